package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/console"
	"likewise/internal/counts"
	"likewise/internal/demo"
	"likewise/internal/hot"
	"likewise/internal/httpapi"
	"likewise/internal/like"
	"likewise/internal/limit"
	"likewise/internal/live"
	"likewise/internal/mirror"
	"likewise/internal/observe"
	"likewise/internal/reconcile"
	"likewise/web"
)

// assemble makes every part of the server and connects them. What it opened until
// an error is in s.cleanup.
func (s *Server) assemble(ctx context.Context, cfg config.Config, o Options) error {
	if cfg.Embedded() {
		if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
			return fmt.Errorf("data directory: %w; name one that can be written with --data-dir", err)
		}
	}
	keys, err := loadKeys(cfg)
	if err != nil {
		return err
	}
	if dutiesOf(cfg).serve {
		if s.public, err = s.listen(ctx, "public", cfg.Listen, "--listen", connections(cfg)); err != nil {
			return err
		}
	}
	if s.admin, err = s.listen(ctx, "admin", cfg.AdminListen, "--admin-listen", limit.ConnConfig{Total: adminConnections}); err != nil {
		return err
	}
	observe.LimitMemory(observe.Memory{Configured: int64(cfg.MemoryLimit), Store: storeMemory(cfg)}, s.log)
	facts, err := s.openStore(ctx, cfg, o)
	if err != nil {
		return err
	}
	tracer, err := observe.NewTracer(ctx, cfg.TraceEndpoint, o.Build, s.log)
	if err != nil {
		return err
	}
	s.cleanup = append(s.cleanup, func() error { return tracer.Shutdown(context.WithoutCancel(ctx)) })
	return s.connect(cfg, o, keys, facts, tracer)
}

// connect makes the parts between the listeners and the ledger. Nothing of it has
// to be released.
func (s *Server) connect(cfg config.Config, o Options, keys keys, facts *store, tracer *observe.Tracer) error {
	verifier, err := auth.New(keys.auth, s.log)
	if err != nil {
		return err
	}
	s.background = append(s.background, part{"token keys", verifier.Run})
	if facts.bus != nil {
		s.background = append(s.background, part{"bus", facts.bus.Run})
	}
	if dutiesOf(cfg).drain && len(cfg.Mirror.Tables) > 0 {
		copies, err := mirror.New(facts.feed, facts.Ledger, mirrorConfig(cfg), s.registry, s.log)
		if err != nil {
			return err
		}
		s.background = append(s.background, part{"mirror", copies.Run})
	}
	var likes func() int64
	if s.public != nil {
		if likes, err = s.serveUsers(cfg, o, keys, facts, verifier, tracer); err != nil {
			return err
		}
	}
	operators, err := s.adminAPI(cfg, o, facts, likes, verifier)
	if err != nil {
		return err
	}
	s.admin.handle(withProfiles(cfg.Pprof, withPages(operators, web.Console())), cfg.Limits, s.log)
	return nil
}

// serveUsers makes what the public listener serves. likes tells how many likes there
// are, where that is known.
func (s *Server) serveUsers(
	cfg config.Config, o Options, keys keys, facts *store, verifier *auth.Verifier, tracer *observe.Tracer,
) (likes func() int64, err error) {
	totals := counts.New(facts.Ledger, facts.cache(), countsConfig(cfg), s.registry)
	if s.streams, err = live.New(liveConfig(cfg), facts.Ledger, s.log, s.registry); err != nil {
		return nil, err
	}
	s.background = append(s.background,
		part{"counts", func(ctx context.Context) error { return totals.Run(ctx, facts.feed) }},
		part{"streams", func(ctx context.Context) error { return s.streams.Run(ctx, facts.feed) }})
	api, err := s.publicAPI(cfg, keys, facts, totals, verifier)
	if err != nil {
		return nil, err
	}
	public := []pages{web.Button()}
	if o.Demo != nil {
		d, err := s.demo(*o.Demo, keys, facts, verifier)
		if err != nil {
			return nil, err
		}
		public, likes = append(public, d), d.Likes
	}
	s.public.handle(s.lastAnswers(withPages(tracer.Wrap(api), public...)), cfg.Limits, s.log)
	s.public.http.WriteTimeout = cfg.Limits.WriteTimeout
	s.registry.MustRegister(newConnectionsCollector(s.public.listener))
	return likes, nil
}

// demo makes the demo, whose visitors have tokens of this server.
func (s *Server) demo(cfg demo.Config, keys keys, facts *store, verifier *auth.Verifier) (*demo.Demo, error) {
	visitors, err := limit.NewLocal(limit.Config{Rate: 5, Burst: 50, MaxKeys: 1 << 12})
	if err != nil {
		return nil, err
	}
	d, err := demo.New(cfg, demo.Deps{
		Ledger: facts.Ledger, Limit: visitors, Log: s.log,
		Sign: func(user like.User, ttl time.Duration) (string, error) { return auth.Sign(keys.auth, user, nil, ttl) },
		Verify: func(ctx context.Context, token string) (like.User, error) {
			identity, err := verifier.Verify(ctx, token)
			return identity.User, err
		},
	})
	if err == nil {
		s.background = append(s.background, part{"demo", d.Run})
	}
	return d, err
}

// publicAPI makes what users speak to.
func (s *Server) publicAPI(
	cfg config.Config, keys keys, facts *store, totals *counts.Counts, verifier *auth.Verifier,
) (http.Handler, error) {
	cursors, err := like.NewCursors(keys.cursor)
	if err != nil {
		return nil, err
	}
	users, err := facts.limiter(userLimit(cfg))
	if err != nil {
		return nil, err
	}
	readers, err := limit.NewLocal(readLimit(cfg))
	if err != nil {
		return nil, err
	}
	addresses, err := limit.NewLocal(addressLimit(cfg))
	if err != nil {
		return nil, err
	}
	return httpapi.New(apiConfig(cfg), httpapi.Deps{
		Ledger: facts.Ledger, Counts: totals, Live: s.streams, Auth: verifier, Cursors: cursors,
		UserLimit: users, ReadLimit: readers, AddressLimit: addresses, Log: s.log, Registerer: s.registry,
	})
}

// adminAPI makes what operators speak to, and the parts that only they need.
// likes tells how many likes there are, where that is known.
func (s *Server) adminAPI(
	cfg config.Config, o Options, facts *store, likes func() int64, verifier *auth.Verifier,
) (http.Handler, error) {
	keeper := reconcile.New(facts.Ledger, auditConfig(cfg), s.registry, s.log)
	hottest := hot.New(s.log)
	if dutiesOf(cfg).audit {
		s.audit = keeper.Run
	}
	s.background = append(s.background, part{"hot items", func(ctx context.Context) error { return hottest.Run(ctx, facts.feed) }})
	checks := map[string]func(context.Context) error{
		"server": func(context.Context) error { return s.stopping() },
		"ledger": facts.Ready,
		"tokens": func(context.Context) error { return verifier.Ready() },
	}
	return httpapi.NewAdmin(httpapi.AdminDeps{
		Ledger: facts.Ledger, Keeper: keeper, Auth: verifier, Log: s.log, Registerer: s.registry, Checks: checks,
		Metrics: promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}),
		Console: console.New(console.Deps{
			Version: o.Build.Version, Metrics: s.registry, Ledger: facts.Ledger, Likes: likes, Hot: hottest, Audits: keeper, Checks: checks,
		}),
	})
}

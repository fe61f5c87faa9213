package server

import (
	"context"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/counts"
	"likewise/internal/httpapi"
	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/internal/limit"
	"likewise/internal/live"
	"likewise/internal/observe"
	"likewise/internal/reconcile"
)

// assemble makes every part of the server and connects them. What it opened until
// an error is in s.cleanup.
func (s *Server) assemble(ctx context.Context, cfg config.Config, o Options) error {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w; name one that can be written with --data-dir", err)
	}
	keys, err := loadKeys(cfg)
	if err != nil {
		return err
	}
	if s.public, err = s.listen(ctx, "public", cfg.Listen, "--listen", connections(cfg)); err != nil {
		return err
	}
	if s.admin, err = s.listen(ctx, "admin", cfg.AdminListen, "--admin-listen", limit.ConnConfig{}); err != nil {
		return err
	}
	observe.LimitMemory(observe.Memory{Configured: int64(cfg.MemoryLimit), Store: storeMemory(cfg)}, s.log)
	facts, err := openLedger(cfg, o, s.registry)
	if err != nil {
		return err
	}
	s.cleanup = append(s.cleanup, facts.Close)
	tracer, err := observe.NewTracer(ctx, cfg.TraceEndpoint, o.Build, s.log)
	if err != nil {
		return err
	}
	s.cleanup = append(s.cleanup, func() error { return tracer.Shutdown(context.WithoutCancel(ctx)) })
	return s.connect(cfg, keys, facts, tracer)
}

// connect makes the parts between the listeners and the ledger. Nothing of it has
// to be released.
func (s *Server) connect(cfg config.Config, keys keys, facts ledger.Ledger, tracer *observe.Tracer) error {
	verifier, err := auth.New(keys.auth, s.log)
	if err != nil {
		return err
	}
	cursors, err := like.NewCursors(keys.cursor)
	if err != nil {
		return err
	}
	users, err := limit.NewLocal(userLimit(cfg))
	if err != nil {
		return err
	}
	addresses, err := limit.NewLocal(addressLimit(cfg))
	if err != nil {
		return err
	}
	totals := counts.New(facts, countsConfig(cfg), s.registry)
	if s.streams, err = live.New(liveConfig(cfg), facts, s.log, s.registry); err != nil {
		return err
	}
	keeper := reconcile.New(facts, auditConfig(cfg), s.registry, s.log)
	api, err := httpapi.New(apiConfig(cfg), httpapi.Deps{
		Ledger: facts, Counts: totals, Live: s.streams, Auth: verifier, Cursors: cursors,
		UserLimit: users, AddressLimit: addresses, Log: s.log, Registerer: s.registry,
	})
	if err != nil {
		return err
	}
	operators, err := httpapi.NewAdmin(httpapi.AdminDeps{
		Keeper: keeper, Auth: verifier, Log: s.log, Registerer: s.registry,
		Checks: map[string]func(context.Context) error{
			"server": func(context.Context) error { return s.stopping() },
			"ledger": facts.Ready,
			"tokens": func(context.Context) error { return verifier.Ready() },
		},
		Metrics: promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}),
	})
	if err != nil {
		return err
	}
	s.public.handle(s.lastAnswers(tracer.Wrap(api)), cfg.Limits, s.log)
	s.public.http.WriteTimeout = publicWriteTimeout
	s.admin.handle(withProfiles(cfg.Pprof, operators), cfg.Limits, s.log)
	s.registry.MustRegister(newConnectionsCollector(s.public.listener))
	s.background = []part{
		{"counts", func(ctx context.Context) error { return totals.Run(ctx, facts) }},
		{"streams", func(ctx context.Context) error { return s.streams.Run(ctx, facts) }},
		{"token keys", verifier.Run},
		{"background audit", keeper.Run},
	}
	return nil
}

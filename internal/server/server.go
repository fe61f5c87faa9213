// Package server is the composition root: it turns a configuration into parts,
// connects them, runs them, and ends them in order. It is the only package that
// knows which ledger there is.
//
//	requests ─► listener ─► httpapi ─► auth, limit, counts ─► ledger
//	operators ► listener ─► httpapi (admin) ─► reconcile ───► ledger
//	            counts.Run ◄── feed ◄──────────────────────── ledger
//
// A start makes the parts in that order from the right, a stop ends them from the
// left: readiness is withdrawn, the background audit ends, no connection is taken
// any more, requests under way are answered, and the ledger is closed last. The first part that fails ends
// the process, and the error names it.
//
// The package must never: answer requests before the ledger is open, close the
// ledger while a request may still use it, or branch on anything but the
// configuration.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"likewise/internal/config"
	"likewise/internal/demo"
	"likewise/internal/live"
	"likewise/internal/observe"
)

// drainPause is how long connections in use have to learn that they end with the
// next answer, before idle ones are closed. Without it a request may be on its way
// on a connection that is just being closed.
const drainPause = 250 * time.Millisecond

// Options is what a server needs beside its configuration.
type Options struct {
	Log   *slog.Logger
	Build observe.Build
	// Now is the wall clock of the ledger; nil is the real one.
	Now func() time.Time
	// Demo adds a page, a crowd and visitors for a store that is thrown away; nil
	// for a server.
	Demo *demo.Config
}

// Server is an assembled server. Its owner calls Run or Close.
type Server struct {
	log      *slog.Logger
	notice   time.Duration // in which a server that is to stop still serves
	patience time.Duration // for a graceful shutdown
	registry *observe.Registry

	public, admin *endpoint
	streams       *live.Hub
	background    []part
	audit         func(context.Context) error // in the background; ended before the requests
	draining      atomic.Bool
	cleanup       []func() error // in the order of assembly
}

// part is something that runs beside the requests until its context is done.
type part struct {
	name string
	run  func(context.Context) error
}

// New opens the store and the listeners of a valid configuration and connects the
// parts. Requests wait until Run. An error says what to do about it.
func New(ctx context.Context, cfg config.Config, o Options) (*Server, error) {
	s := &Server{
		log: o.Log, notice: cfg.Limits.DrainDelay, patience: cfg.Limits.ShutdownTimeout,
		registry: observe.NewRegistry(o.Build),
	}
	if err := s.assemble(ctx, cfg, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Addresses returns the host:port of the public and of the admin listener, with
// the real port where the configuration says 0; public is "" in a role that serves
// no users.
func (s *Server) Addresses() (public, admin string) {
	if s.public != nil {
		public = s.public.listener.Addr().String()
	}
	return public, s.admin.listener.Addr().String()
}

// Close releases a server that was not run.
func (s *Server) Close() error {
	var errs []error
	for _, release := range slices.Backward(s.cleanup) {
		errs = append(errs, release())
	}
	s.cleanup = nil
	return errors.Join(errs...)
}

// Run serves until ctx is done or a part fails, then ends the parts in order and
// closes the server. It returns nil after a stop that was asked for, also when
// requests had to be cut off at the deadline; nothing acknowledged is lost by that.
// Any other end is the last line of the log.
func (s *Server) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, failed := errgroup.WithContext(work)
	for _, p := range s.background {
		group.Go(func() error { return named(p.name, p.run(failed)) })
	}
	auditing, stopAudit := context.WithCancel(failed)
	defer stopAudit()
	audited := make(chan struct{})
	group.Go(func() error {
		defer close(audited)
		if s.audit == nil {
			return nil
		}
		return named("background audit", s.audit(auditing))
	})
	for _, e := range s.endpoints() {
		group.Go(func() error { return named(e.name+" listener", s.serve(e)) })
	}
	public, admin := s.Addresses()
	s.log.Info("serving", "listen", public, "admin_listen", admin)

	select {
	case <-ctx.Done():
		s.log.Info("stopping: requests under way are finished", "after", s.notice.String(), "within", s.patience.String())
	case <-failed.Done():
	}
	stopAudit()
	s.giveNotice(failed)
	s.drain(context.WithoutCancel(ctx), audited)
	stop()
	if err := errors.Join(group.Wait(), s.Close()); err != nil {
		s.log.Error("stopped by a failure", "error", err)
		return err
	}
	s.log.Info("stopped")
	return nil
}

// serve runs one listener. That it ends while draining is no failure.
func (s *Server) serve(e *endpoint) error {
	err := e.http.Serve(e.listener)
	if errors.Is(err, http.ErrServerClosed) || s.draining.Load() {
		return nil
	}
	return err
}

// giveNotice withdraws readiness, and serves on until a load balancer has noticed or
// a part has failed.
func (s *Server) giveNotice(failed context.Context) {
	s.draining.Store(true)
	if s.notice == 0 {
		return
	}
	select {
	case <-time.After(s.notice):
	case <-failed.Done():
	}
}

// drain waits for the background audit, which holds up audits that operators asked
// for, ends intake, tells streams to come back, and finishes requests: the public
// ones first, so that health and metrics can be read meanwhile. Operators' requests
// are ended, because they may take any time and can be repeated.
func (s *Server) drain(ctx context.Context, audited <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	select {
	case <-audited:
	case <-ctx.Done():
	}
	if s.public != nil {
		s.endIntake(ctx)
	}
	for _, e := range s.endpoints() {
		if e == s.admin {
			e.cancel(errStopping)
		}
		// The public listener is closed already, which Shutdown may mention.
		if err := e.http.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
			s.log.Warn("requests were cut off at the deadline", "listener", e.name, "error", err)
			e.cancel(errStopping)
			_ = e.http.Close() // every connection is broken; their errors say nothing more
		}
	}
}

// endIntake takes no connection of users any more, and ends their streams.
func (s *Server) endIntake(ctx context.Context) {
	if err := s.public.listener.Close(); err != nil {
		s.log.Warn("closing the public listener", "error", err)
	}
	if open, _ := s.public.listener.Stats(); open > 0 {
		select {
		case <-time.After(drainPause):
		case <-ctx.Done():
		}
	}
	s.endStreams(ctx)
}

// endpoints lists the listeners, the public one first where there is one.
func (s *Server) endpoints() []*endpoint {
	if s.public == nil {
		return []*endpoint{s.admin}
	}
	return []*endpoint{s.public, s.admin}
}

// endStreams gives streams half of the time for a shutdown.
func (s *Server) endStreams(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.patience/2)
	defer cancel()
	if err := s.streams.Drain(ctx); err != nil {
		s.log.Warn("streams were cut off at the deadline", "error", err)
	}
}

// lastAnswers makes every answer the last of its connection while draining.
func (s *Server) lastAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"syscall"

	"likewise/internal/config"
	"likewise/internal/like"
	"likewise/internal/limit"
)

// adminConnections is how many operators, probes and scrapers may be connected.
const adminConnections = 256

var errStopping = fmt.Errorf("%w: the server is stopping", like.ErrClosed)

// endpoint is one listener with what serves it.
type endpoint struct {
	name     string
	listener *limit.Listener
	http     *http.Server
	requests context.Context // of every request; done when they are to end at once
	cancel   context.CancelCauseFunc
}

// listen binds an address; flag is where a person can change it.
func (s *Server) listen(ctx context.Context, name, address, flag string, conns limit.ConnConfig) (*endpoint, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w; another server has that port: stop it, or choose another address with %s", err, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; choose an address of this machine with %s", err, flag)
	}
	e := &endpoint{name: name, listener: limit.NewListener(l, conns)}
	e.requests, e.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.cleanup = append(s.cleanup, func() error {
		e.cancel(errStopping)
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return e, nil
}

// handle makes what serves the endpoint.
func (e *endpoint) handle(h http.Handler, l config.Limits, log *slog.Logger) {
	e.http = &http.Server{
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { return e.requests },
		ReadHeaderTimeout: l.ReadHeaderTimeout,
		ReadTimeout:       l.ReadTimeout,
		IdleTimeout:       l.IdleTimeout,
		MaxHeaderBytes:    int(l.MaxHeaderBytes),
		ErrorLog:          slog.NewLogLogger(log.With("component", "http").Handler(), slog.LevelDebug),
	}
}

// stopping is the readiness of the server itself.
func (s *Server) stopping() error {
	if s.draining.Load() {
		return errStopping
	}
	return nil
}

// withProfiles adds the runtime's profiles to the admin listener.
func withProfiles(on bool, next http.Handler) http.Handler {
	if !on {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch name, ok := strings.CutPrefix(r.URL.Path, "/debug/pprof/"); {
		case !ok:
			next.ServeHTTP(w, r)
		case name == "profile":
			pprof.Profile(w, r)
		case name == "trace":
			pprof.Trace(w, r)
		case name == "symbol":
			pprof.Symbol(w, r)
		default:
			pprof.Index(w, r)
		}
	})
}

package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"likewise/internal/auth"
	"likewise/internal/limit"
	"likewise/internal/observe"
)

// Authenticator turns a bearer token into an identity. Its error is
// [auth.ErrUnauthenticated] for a token that is not accepted, or one of the
// kinds of package like.
type Authenticator interface {
	// Known returns the identity of a token that was accepted before, at little cost.
	Known(token string) (auth.Identity, bool)
	Verify(ctx context.Context, token string) (auth.Identity, error)
}

// site is what the public API and the admin API have in common: the layers in
// front of a table of routes.
type site struct {
	cfg     Config
	auth    Authenticator
	log     *slog.Logger
	metrics *metrics
	mux     *http.ServeMux

	userLimit    limit.Limiter // nil: none
	readLimit    limit.Limiter // nil: none
	addressLimit limit.Limiter // nil: none

	lastUnavailable atomic.Int64 // Unix second of the last log line about a 503
}

// route is one row of an API.
type route struct {
	pattern string // of http.ServeMux; also the route's name in metrics
	access  access
	serve   func(x *exchange, r *http.Request) error

	latency prometheus.Observer
}

// access says who may use a route and what bounds the use.
type access struct {
	token   bool   // a token is needed
	scope   string // a scope that it must have
	write   bool   // the limit of one user's likes applies, else that of their reads
	system  bool   // open to everybody, without a limit: documents and health
	endless bool   // the request's timeout does not apply
	duplex  bool   // an answer, also a refusal, does not wait for the end of the body
}

// handler builds a site. A request passes the layers from the last to the first.
func (s *site) handler(routes []route) http.Handler {
	s.mux = http.NewServeMux()
	for i := range routes {
		rt := &routes[i]
		rt.latency = s.metrics.latencyOf(rt.pattern)
		s.mux.Handle(rt.pattern, s.enter(rt))
	}
	s.mux.Handle("/", http.HandlerFunc(s.nowhere))

	var h http.Handler = s.mux
	h = s.canonical(h)
	h = s.cors(h)
	h = s.recovered(h)
	h = s.observe(h)
	return h
}

// enter is a route's own layers: who asks, how often, for how long.
func (s *site) enter(rt *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange)
		x.route = rt
		if rt.access.duplex {
			_ = http.NewResponseController(x.ResponseWriter).EnableFullDuplex() // HTTP/2 is so by itself
		}
		if !rt.access.endless {
			ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		err := s.admit(x, r, rt.access)
		if err == nil {
			err = rt.serve(x, r)
		}
		if err != nil {
			s.report(r.Context(), x, err)
			x.fail(err)
		}
	})
}

// observe is the outermost layer: request id, headers of every answer, metrics.
func (s *site) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		s.metrics.inFlight.Inc()
		x := &exchange{ResponseWriter: w, id: requestID(r)}
		defer func() {
			s.metrics.inFlight.Dec()
			s.metrics.done(x, r.Method, time.Since(start))
		}()
		h := w.Header()
		h["X-Request-Id"] = []string{x.id}
		h["X-Content-Type-Options"] = []string{"nosniff"}
		h["Cache-Control"] = []string{"private, no-store"}
		next.ServeHTTP(x, r.WithContext(observe.WithRequestID(r.Context(), x.id)))
	})
}

// recovered turns a panic into a problem, or into a broken connection when the
// answer is under way already.
func (s *site) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			x := w.(*exchange)
			s.metrics.panics.Inc()
			s.log.ErrorContext(r.Context(), "panic in a handler",
				"panic", p, "stack", string(debug.Stack()))
			if x.status != 0 {
				panic(http.ErrAbortHandler)
			}
			x.fail(refuse(internalError, ""))
		}()
		next.ServeHTTP(w, r)
	})
}

// nowhere answers what no route matches: 405 where another method would do.
func (s *site) nowhere(w http.ResponseWriter, r *http.Request) {
	x := w.(*exchange)
	if allowed := s.methods(r); len(allowed) > 0 {
		x.Header().Set("Allow", strings.Join(allowed, ", "))
		x.fail(refuse(methodNotAllowed, "allowed here: %s", strings.Join(allowed, ", ")))
		return
	}
	x.fail(refuse(notFound, "no such path"))
}

// methods lists the methods that the path of a request has a route for.
func (s *site) methods(r *http.Request) (allowed []string) {
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut} {
		probe := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := s.mux.Handler(probe); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// report logs a failure that is ours: every one that nobody expects, and at most
// one a second of those that say the store cannot serve.
func (s *site) report(ctx context.Context, x *exchange, err error) {
	p, _ := explain(err)
	level := slog.LevelError
	switch {
	case p.status < 500 || p.status == http.StatusNotImplemented:
		return
	case p.status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
		now := time.Now().Unix()
		if last := s.lastUnavailable.Load(); last == now || !s.lastUnavailable.CompareAndSwap(last, now) {
			return
		}
	}
	s.log.LogAttrs(ctx, level, "request failed",
		slog.String("route", x.route.pattern), slog.Any("error", err))
}

// Package observe sets up what an operator sees of the process: the log, the
// metrics registry, traces, and the memory limit with the arithmetic behind it.
//
// It makes the tools and measures nothing itself: metrics are fields of the
// packages that they describe, built from the [Registry] that is handed to them.
// It keeps no global state except what the runtime and OpenTelemetry insist on,
// and only [Tracer] owns goroutines, which end with Shutdown.
package observe

import (
	"context"
	"io"
	"log/slog"
	"os"
)

// NewLogger returns a logger to w. The format is "text" or "json"; anything else
// means text when w is a terminal and json otherwise. A record that is logged with
// a context carries the context's request id.
func NewLogger(w io.Writer, level slog.Leveler, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "text" || format != "json" && IsTerminal(w) {
		return slog.New(contextHandler{slog.NewTextHandler(w, options)})
	}
	return slog.New(contextHandler{slog.NewJSONHandler(w, options)})
}

// IsTerminal reports whether w is a character device, which is near enough: of
// the others only /dev/null is ever logged to.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

type requestIDKey struct{}

// WithRequestID returns a context whose log records carry id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the request id of ctx, or "" outside a request.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// contextHandler adds what the context knows to each record.
type contextHandler struct{ slog.Handler }

func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	if id := RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h contextHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextHandler{h.Handler.WithAttrs(attrs)}
}

func (h contextHandler) WithGroup(name string) slog.Handler {
	return contextHandler{h.Handler.WithGroup(name)}
}

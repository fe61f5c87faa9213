package observe

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Tracer records a span for each request and exports it. The zero of it, nil,
// traces nothing and costs nothing.
type Tracer struct {
	provider *sdktrace.TracerProvider
}

// NewTracer returns a tracer that sends OTLP over HTTP to the URL endpoint; an
// empty one gives nil. Which requests are traced follows the caller's decision,
// and OTEL_TRACES_SAMPLER for those without one. Failures to export are logged.
// The caller must call Shutdown.
func NewTracer(ctx context.Context, endpoint string, b Build, logger *slog.Logger) (*Tracer, error) {
	if endpoint == "" {
		return nil, nil
	}
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("trace_endpoint: %w", err)
	}
	if strings.Trim(target.Path, "/") == "" {
		target.Path = "/v1/traces" // the exporter does so only when the environment names the endpoint
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(target.String()))
	if err != nil {
		return nil, fmt.Errorf("trace_endpoint: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.Warn("traces are not exported", "component", "trace", "error", err)
	}))
	return &Tracer{sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "likewise"),
			attribute.String("service.version", b.Version),
		)),
	)}, nil
}

// Wrap returns h with a span around each request, named after the route.
func (t *Tracer) Wrap(h http.Handler) http.Handler {
	if t == nil {
		return h
	}
	return otelhttp.NewHandler(h, "http",
		otelhttp.WithTracerProvider(t.provider),
		otelhttp.WithPropagators(propagation.TraceContext{}))
}

// Shutdown exports what is left and ends the tracer's goroutines.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

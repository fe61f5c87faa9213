package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts requests by route, never by user or item.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	panics   prometheus.Counter
}

// newMetrics registers the metrics of one API, which its name tells apart.
func newMetrics(reg prometheus.Registerer, api string) *metrics {
	if reg != nil {
		reg = prometheus.WrapRegistererWith(prometheus.Labels{"api": api}, reg)
	}
	factory := promauto.With(reg)
	return &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "likewise_http_requests_total",
			Help: "Requests answered, by route pattern, method and status.",
		}, []string{"route", "method", "code"}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "likewise_http_request_seconds",
			Help: "Time from the headers of a request to the end of its answer, by route pattern.",
			// Close together from 1 to 50 ms, where the promises about writes lie.
			Buckets: []float64{.00025, .0005, .001, .0012, .002, .003, .005, .008, .012, .02, .03, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "likewise_http_in_flight_requests",
			Help: "Requests being served.",
		}),
		panics: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_http_panics_total",
			Help: "Handlers that panicked; each is a bug.",
		}),
	}
}

func (m *metrics) latencyOf(pattern string) prometheus.Observer {
	return m.seconds.WithLabelValues(pattern)
}

// done counts one request. What matched no route has no name of its own, and an
// unknown method neither, so that callers cannot invent labels.
func (m *metrics) done(x *exchange, method string, took time.Duration) {
	pattern := "none"
	if x.route != nil {
		pattern = x.route.pattern
		x.route.latency.Observe(took.Seconds())
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions:
	default:
		method = "other"
	}
	status := x.status
	if status == 0 {
		status = http.StatusOK
	}
	m.requests.WithLabelValues(pattern, method, strconv.Itoa(status)).Inc()
}

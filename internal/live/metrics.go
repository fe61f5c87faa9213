package live

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// transport is how a client is connected.
type transport int

const (
	overSSE transport = iota // without a goroutine
	overPlainSSE
	overWebSocket
	transports
)

// metrics says how many watch and what became of the frames.
type metrics struct {
	clients   [transports]prometheus.Gauge
	refused   prometheus.Counter
	frames    prometheus.Counter
	merged    prometheus.Counter // totals replaced before a flush
	skipped   prometheus.Counter // frames that a slow client did not get
	slow      prometheus.Counter
	flushes   prometheus.Histogram
	resyncs   prometheus.Counter
	readFails prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, items func() float64) *metrics {
	factory := promauto.With(reg)
	clients := factory.NewGaugeVec(prometheus.GaugeOpts{
		Name: "likewise_live_clients",
		Help: "Open streams, by transport.",
	}, []string{"transport"})
	conflated := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "likewise_live_conflated_total",
		Help: "Values that a newer one replaced: totals before a flush (hub), frames of slow clients (client).",
	}, []string{"at"})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "likewise_live_items",
		Help: "Items that are watched, or were until lately.",
	}, items)
	m := &metrics{
		refused: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_live_refused_streams_total",
			Help: "Streams refused because there were too many.",
		}),
		frames: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_live_frames_total",
			Help: "Frames of counts given to clients.",
		}),
		merged:  conflated.WithLabelValues("hub"),
		skipped: conflated.WithLabelValues("client"),
		slow: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_live_dropped_clients_total",
			Help: "Clients dropped because they did not take a frame in time.",
		}),
		flushes: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "likewise_live_flush_seconds",
			Help:    "Time to offer what changed to every client that watches it.",
			Buckets: []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}),
		resyncs: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_live_resyncs_total",
			Help: "Times that every item was read again because the feed had a gap.",
		}),
		readFails: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_live_read_errors_total",
			Help: "Reads of totals that failed.",
		}),
	}
	for t, name := range [transports]string{"sse", "sse_plain", "websocket"} {
		m.clients[t] = clients.WithLabelValues(name)
	}
	return m
}

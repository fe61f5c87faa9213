package redis

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics says how Redis does and what is done without it.
type metrics struct {
	get, put, publish, limit operation
	dropped                  prometheus.Counter
	malformed                prometheus.Counter
	sent, received           prometheus.Counter
	resubscribed             prometheus.Counter
	gaps                     prometheus.Counter
}

// operation is what is known of the calls of one kind.
type operation struct {
	seconds                    prometheus.Observer
	succeeded, failed, skipped prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, up func() bool) *metrics {
	factory := promauto.With(reg)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "likewise_redis_up",
		Help: "Whether all of Redis can be used (1) or this node goes on without some of it (0).",
	}, func() float64 {
		if up() {
			return 1
		}
		return 0
	})
	seconds := factory.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "likewise_redis_call_seconds",
		Help:    "Time of calls to Redis that ended, by operation.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
	}, []string{"operation"})
	calls := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "likewise_redis_calls_total",
		Help: "Calls to Redis by operation and outcome: ok, failed (some of it did not answer in time, or refused), or skipped because it could not be used lately. What failed or was skipped is answered by the ledger or decided by the limits of this node.",
	}, []string{"operation", "outcome"})
	totals := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "likewise_redis_bus_totals_total",
		Help: "Totals sent to and received from the nodes, own ones included.",
	}, []string{"direction"})
	op := func(name string) operation {
		return operation{
			seconds:   seconds.WithLabelValues(name),
			succeeded: calls.WithLabelValues(name, "ok"),
			failed:    calls.WithLabelValues(name, "failed"),
			skipped:   calls.WithLabelValues(name, "skipped"),
		}
	}
	return &metrics{
		get: op("get"), put: op("put"), publish: op("publish"), limit: op("limit"),
		sent: totals.WithLabelValues("sent"), received: totals.WithLabelValues("received"),
		dropped: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_redis_dropped_total",
			Help: "Totals that were not written to the cache because Redis was slow or could not be used. They are missed, not wrong.",
		}),
		malformed: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_redis_malformed_total",
			Help: "Values and messages that did not parse and were ignored.",
		}),
		resubscribed: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_redis_bus_resubscribes_total",
			Help: "Subscriptions that ended and were made again, of 16.",
		}),
		gaps: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_redis_bus_gaps_total",
			Help: "Times that the ledger's feed ended early under the bus.",
		}),
	}
}

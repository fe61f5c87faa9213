package counts

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics says where answers came from. Entries are counted, not pages.
type metrics struct {
	fromL1       prometheus.Counter
	fromShared   prometheus.Counter
	fromLedger   prometheus.Counter
	stale        prometheus.Counter
	loads        prometheus.Counter
	loadErrors   prometheus.Counter
	loadsRefused prometheus.Counter
	feedRestarts prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, entries func() float64) metrics {
	factory := promauto.With(reg)
	reads := factory.NewCounterVec(prometheus.CounterOpts{
		Name: "likewise_counts_reads_total",
		Help: "Totals served, by the tier that had them.",
	}, []string{"tier"})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "likewise_counts_cached_items",
		Help: "Totals held in the in-process cache.",
	}, entries)
	return metrics{
		fromL1:     reads.WithLabelValues("l1"),
		fromShared: reads.WithLabelValues("shared"),
		fromLedger: reads.WithLabelValues("ledger"),
		stale: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_counts_stale_total",
			Help: "Totals served with their age because the ledger failed.",
		}),
		loads: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_counts_loads_total",
			Help: "Reads of totals from the ledger, each of one or more items.",
		}),
		loadErrors: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_counts_load_errors_total",
			Help: "Reads of totals from the ledger that failed.",
		}),
		loadsRefused: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_counts_loads_refused_total",
			Help: "Reads of totals that were not made because too many were under way.",
		}),
		feedRestarts: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_counts_feed_restarts_total",
			Help: "Times the feed of changed totals ended early and was opened again.",
		}),
	}
}

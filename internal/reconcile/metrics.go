package reconcile

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	items, found, corrected prometheus.Counter
	finished, duration      prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) metrics {
	factory := promauto.With(reg)
	return metrics{
		items: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_audit_items_total",
			Help: "Items whose facts were counted and compared with their total.",
		}),
		found: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_drift_found_total",
			Help: "Items whose total or list differed from their facts. Any increase is a bug: alert on it.",
		}),
		corrected: factory.NewCounter(prometheus.CounterOpts{
			Name: "likewise_drift_corrected_total",
			Help: "Items whose difference an audit corrected.",
		}),
		finished: factory.NewGauge(prometheus.GaugeOpts{
			Name: "likewise_audit_last_finished_timestamp_seconds",
			Help: "When the last audit of everything came to its end; 0 before the first.",
		}),
		duration: factory.NewGauge(prometheus.GaugeOpts{
			Name: "likewise_audit_last_duration_seconds",
			Help: "How long the last finished audit of everything took.",
		}),
	}
}

func (m *metrics) completed(run Run) {
	m.finished.Set(float64(run.Ended.UnixMilli()) / 1000)
	m.duration.Set(run.Took.Seconds())
}

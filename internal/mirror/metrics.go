package mirror

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are those of one column.
type metrics struct {
	written, flushes, errors, skipped, refused, swept prometheus.Counter
	sweeping, sweptAt                                 prometheus.Gauge
}

// newMetrics registers the metrics of a collection's column; lag is in seconds.
func newMetrics(reg prometheus.Registerer, collection string, lag func() float64) metrics {
	label := prometheus.Labels{"collection": collection}
	factory := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return factory.NewCounter(prometheus.CounterOpts{Name: "likewise_mirror_" + name, Help: help, ConstLabels: label})
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Name: "likewise_mirror_" + name, Help: help, ConstLabels: label}
	}
	factory.NewGaugeFunc(gauge("lag_seconds",
		"Age of the oldest change that is known not to be in the mirrored column yet; rows that refused theirs are left out."), lag)
	return metrics{
		written: counter("rows_written_total", "Rows of the mirrored column that were changed."),
		flushes: counter("flushes_total", "Transactions that brought changed totals into the mirrored column."),
		errors:  counter("errors_total", "Attempts to mirror that failed; each is made again."),
		skipped: counter("skipped_ids_total",
			"Changed items whose id is none that the mirrored table's id column can hold, and that were left out."),
		refused: counter("refused_rows_total",
			"Times that the database refused to write a row of the mirrored table, which was left out until the next sweep or its next change."),
		swept:    counter("swept_rows_total", "Rows of the mirrored table that sweeps compared with their totals."),
		sweeping: factory.NewGauge(gauge("sweeping", "1 while a sweep compares the whole mirrored column, else 0.")),
		sweptAt: factory.NewGauge(gauge("last_sweep_timestamp_seconds",
			"When the last sweep came to its end; 0 before the first: changes that an earlier process lost may be missing.")),
	}
}

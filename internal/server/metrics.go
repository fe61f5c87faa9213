package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"likewise/internal/ledger/pebble"
	"likewise/internal/ledger/postgres"
	"likewise/internal/limit"
)

// ledgerMetrics measures each commit.
type ledgerMetrics struct {
	size, wait prometheus.Histogram
}

func newLedgerMetrics(reg prometheus.Registerer) *ledgerMetrics {
	factory := promauto.With(reg)
	return &ledgerMetrics{
		size: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "likewise_commit_commands",
			Help:    "Commands that became durable together.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}),
		wait: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "likewise_commit_wait_seconds",
			Help: "From queueing the oldest command of a commit until it was durable.",
			// Close together from 1 to 50 ms, where the promises about writes lie.
			Buckets: []float64{.0005, .001, .002, .003, .005, .008, .012, .02, .03, .05, .1, .25, .5, 1, 2.5},
		}),
	}
}

func (m *ledgerMetrics) observe(commands int, wait time.Duration) {
	m.size.Observe(float64(commands))
	m.wait.Observe(wait.Seconds())
}

// collector reads a snapshot of numbers at each scrape.
type collector[T any] struct {
	read func() T
	rows []row[T]
}

type row[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) float64
}

func newRow[T any](name, help string, kind prometheus.ValueType, value func(T) float64) row[T] {
	return row[T]{prometheus.NewDesc(name, help, nil, nil), kind, value}
}

// Describe implements [prometheus.Collector].
func (c *collector[T]) Describe(ch chan<- *prometheus.Desc) {
	for _, r := range c.rows {
		ch <- r.desc
	}
}

// Collect implements [prometheus.Collector].
func (c *collector[T]) Collect(ch chan<- prometheus.Metric) {
	now := c.read()
	for _, r := range c.rows {
		ch <- prometheus.MustNewConstMetric(r.desc, r.kind, r.value(now))
	}
}

func newLedgerCollector(read func() pebble.Stats) *collector[pebble.Stats] {
	type s = pebble.Stats
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	return &collector[s]{read, []row[s]{
		newRow("likewise_commits_total", "Groups of commands made durable together.", counter, func(s s) float64 { return float64(s.Commits) }),
		newRow("likewise_commands_total", "Commands acknowledged, repeats included.", counter, func(s s) float64 { return float64(s.Commands) }),
		newRow("likewise_changes_total", "Facts added and removed.", counter, func(s s) float64 { return float64(s.Changes) }),
		newRow("likewise_refused_commands_total", "Commands refused because the queue was full or too slow.", counter, func(s s) float64 { return float64(s.Refused) }),
		newRow("likewise_queue_commands", "Commands waiting for the writer.", gauge, func(s s) float64 { return float64(s.QueueLength) }),
		newRow("likewise_queue_age_seconds", "How long the writer has taken none of the waiting commands.", gauge, func(s s) float64 { return s.QueueAge.Seconds() }),
		newRow("likewise_disk_free_bytes", "Free space on the file system of the store.", gauge, func(s s) float64 { return float64(s.DiskFreeBytes) }),
		newRow("likewise_store_bytes", "Space taken by the store.", gauge, func(s s) float64 { return float64(s.StoreBytes) }),
		newRow("likewise_store_log_bytes", "Space taken by the write-ahead log of the store.", gauge, func(s s) float64 { return float64(s.LogBytes) }),
		newRow("likewise_store_compaction_debt_bytes", "Data that compactions have still to rewrite.", gauge, func(s s) float64 { return float64(s.DebtBytes) }),
		newRow("likewise_store_cache_bytes", "Memory used by the block cache.", gauge, func(s s) float64 { return float64(s.CacheBytes) }),
		newRow("likewise_store_memtable_bytes", "Memory used by memtables.", gauge, func(s s) float64 { return float64(s.MemtableBytes) }),
		newRow("likewise_store_read_depth", "Sorted runs that a read may have to look into.", gauge, func(s s) float64 { return float64(s.ReadDepth) }),
	}}
}

func newPostgresCollector(read func() postgres.Stats) *collector[postgres.Stats] {
	type s = postgres.Stats
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	return &collector[s]{read, []row[s]{
		newRow("likewise_commits_total", "Groups of commands made durable together.", counter, func(s s) float64 { return float64(s.Commits) }),
		newRow("likewise_commands_total", "Commands acknowledged, repeats included.", counter, func(s s) float64 { return float64(s.Commands) }),
		newRow("likewise_changes_total", "Facts added and removed.", counter, func(s s) float64 { return float64(s.Changes) }),
		newRow("likewise_refused_commands_total", "Commands refused because the queue was full or too slow.", counter, func(s s) float64 { return float64(s.Refused) }),
		newRow("likewise_queue_commands", "Commands waiting for the writer.", gauge, func(s s) float64 { return float64(s.QueueLength) }),
		newRow("likewise_queue_age_seconds", "How long the writer has taken none of the waiting commands.", gauge, func(s s) float64 { return s.QueueAge.Seconds() }),
		newRow("likewise_ledger_retries_total", "Transactions that the database rolled back and that were tried again.", counter, func(s s) float64 { return float64(s.Retries) }),
		newRow("likewise_ledger_unanswered_commits_total", "Transactions whose COMMIT was not answered, so that the database was asked what became of them.", counter, func(s s) float64 { return float64(s.Unanswered) }),
		newRow("likewise_ledger_drained_transactions_total", "Transactions by whose changes this process moved totals.", counter, func(s s) float64 { return float64(s.Drained) }),
		newRow("likewise_ledger_replica_reads_total", "Reads that a replica answered.", counter, func(s s) float64 { return float64(s.ReplicaReads) }),
		newRow("likewise_ledger_replica_misses_total", "Reads that the primary answered because the replica for them was behind, slow or away.", counter, func(s s) float64 { return float64(s.ReplicaMisses) }),
		newRow("likewise_ledger_lag_seconds", "Age of the oldest change that no total has moved by yet.", gauge, func(s s) float64 { return s.Lag.Seconds() }),
		newRow("likewise_ledger_connections", "Open connections to the databases.", gauge, func(s s) float64 { return float64(s.Connections) }),
		newRow("likewise_ledger_busy_connections", "Connections to the databases that are in use.", gauge, func(s s) float64 { return float64(s.BusyConnections) }),
	}}
}

type connectionStats struct {
	open    int
	refused uint64
}

func newConnectionsCollector(l *limit.Listener) *collector[connectionStats] {
	read := func() (s connectionStats) {
		s.open, s.refused = l.Stats()
		return s
	}
	return &collector[connectionStats]{read, []row[connectionStats]{
		newRow("likewise_connections", "Open connections to the public listener.", prometheus.GaugeValue,
			func(s connectionStats) float64 { return float64(s.open) }),
		newRow("likewise_refused_connections_total", "Connections closed at once because there were too many.", prometheus.CounterValue,
			func(s connectionStats) float64 { return float64(s.refused) }),
	}}
}

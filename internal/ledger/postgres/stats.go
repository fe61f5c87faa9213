package postgres

import "time"

// Stats are numbers of this node since it started, and of the databases now.
type Stats struct {
	Commits, Commands, Changes uint64
	// Refused counts commands that found the queue full or waited too long.
	Refused uint64
	// Retries counts transactions that were rolled back and tried again, and
	// Unanswered those whose COMMIT was not answered and that were asked for.
	Retries, Unanswered uint64
	// Drained counts outbox rows that this node drained.
	Drained uint64
	// ReplicaReads counts reads that a replica answered, and ReplicaMisses those that
	// the primary answered in place of one.
	ReplicaReads, ReplicaMisses uint64
	// QueueLength is in commands, QueueAge that of the oldest one.
	QueueLength int
	QueueAge    time.Duration
	// Lag is the age of the oldest change that no total has moved by yet, when the
	// databases were last asked.
	Lag time.Duration
	// Connections are those in use and those open, of all pools.
	BusyConnections, Connections int
}

// Stats returns them, summed over the databases; ages are those of the worst one.
func (l *Ledger) Stats() Stats {
	var sum Stats
	for _, s := range l.shards {
		sum.Commits += s.commits.Load()
		sum.Commands += s.commands.Load()
		sum.Changes += s.changes.Load()
		sum.Retries += s.retries.Load()
		sum.Unanswered += s.unanswered.Load()
		sum.Drained += s.drained.Load()
		sum.ReplicaReads += s.replicaReads.Load()
		sum.ReplicaMisses += s.replicaMisses.Load()
		waiting, age, refused := s.queue.stats()
		sum.QueueLength += waiting
		sum.QueueAge = max(sum.QueueAge, age)
		sum.Refused += refused
		sum.Lag = max(sum.Lag, time.Duration(s.lag.Load()))
		for _, pool := range s.pools() {
			use := pool.Stat()
			sum.BusyConnections += int(use.AcquiredConns())
			sum.Connections += int(use.TotalConns())
		}
	}
	return sum
}

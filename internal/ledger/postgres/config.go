package postgres

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Config is the settings of a ledger. Start from DefaultConfig.
type Config struct {
	// URLs of the databases, one for each shard, in any order.
	URLs []string
	// Replicas are URLs of streaming replicas of any of the databases. Reads may go
	// there, except those of totals.
	Replicas []string
	// PgBouncer says that the URLs lead to PgBouncer in transaction mode, where
	// nothing can be prepared.
	PgBouncer bool
	// MaxConnections to each database, at least two more than Writers. A standstill has
	// one of its own beside them.
	MaxConnections int

	// Writers is how many transactions this node may have under way in a database.
	Writers int
	// BatchCommands is the number of commands from which a batch is full, and
	// BatchWait how long the first one waits for others.
	BatchCommands int
	BatchWait     time.Duration
	// QueueLength is how many commands may wait for a writer of one database, and
	// QueueAge how long; also how long a batch is tried again.
	QueueLength int
	QueueAge    time.Duration

	// Drain says whether this process drains the outbox. One has to.
	Drain bool
	// DrainInterval is the time between two drains, and between two looks at what
	// others drained.
	DrainInterval time.Duration

	// AcceptUnsafe opens databases that may lose what they committed.
	AcceptUnsafe bool

	// Now is the wall clock of stamps; nil is that of the database.
	Now func() time.Time
	// Logger gets what operators should know; nil discards it.
	Logger *slog.Logger
	// OnCommit is called behind every batch, from several goroutines.
	OnCommit func(Commit)
	// OnFatal is called when a database has gone back in time, as after a failover to a
	// replica that lagged, or a restore. It ends the process: nothing else forgets
	// every total that was told meanwhile.
	OnFatal func(error)
	// OnDrain is called with the totals that this process moved, after the commit and
	// from several goroutines. The slice is the callee's.
	OnDrain func([]like.Total)
}

// Commit is one batch that became durable.
type Commit struct {
	Commands int           // repeats included
	Wait     time.Duration // from queueing the oldest command until it was durable
}

// DefaultConfig returns settings for a database of its own on the same network.
func DefaultConfig() Config {
	return Config{
		MaxConnections: 16,
		Writers:        4,
		BatchCommands:  500,
		BatchWait:      2 * time.Millisecond,
		QueueLength:    16384,
		QueueAge:       time.Second,
		Drain:          true,
		DrainInterval:  250 * time.Millisecond,
		OnFatal:        func(error) { os.Exit(1) },
	}
}

func (c *Config) validate() error {
	switch {
	case len(c.URLs) == 0:
		return fmt.Errorf("%w: postgres ledger without a database", like.ErrInvalid)
	case c.Writers < 1 || c.MaxConnections < c.Writers+2:
		return fmt.Errorf("%w: postgres ledger needs a writer, and two connections more than writers", like.ErrInvalid)
	case c.BatchCommands < 1 || c.BatchCommands > ledger.MaxBatch || c.QueueLength < ledger.MaxBatch:
		return fmt.Errorf("%w: postgres ledger needs batches of 1 to %d commands and a queue of at least as many", like.ErrInvalid, ledger.MaxBatch)
	case c.BatchWait < 0 || c.QueueAge <= 0 || c.DrainInterval <= 0:
		return fmt.Errorf("%w: postgres ledger needs positive times", like.ErrInvalid)
	}
	return nil
}

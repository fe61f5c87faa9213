package pebble

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"likewise/internal/like"
)

// Config says where the store is and how much it may use. Start from
// [DefaultConfig].
type Config struct {
	// Dir is the ledger's own directory; it is created when missing.
	Dir string
	// CacheBytes is the size of the block cache.
	CacheBytes int64
	// MemtableBytes is the size of one memtable; up to four exist at once.
	MemtableBytes uint64
	// FilterBytes bounds the in-memory filter that saves a read for each new
	// like. Beyond it the filter saves fewer reads; 0 does without.
	FilterBytes int64
	// QueueLength is how many commands may wait before more are refused with
	// like.ErrOverloaded.
	QueueLength int
	// QueueAge is how long a command may wait before it is refused likewise.
	QueueAge time.Duration
	// DiskReserveBytes is the free space below which commands are refused with
	// like.ErrUnavailable while reads go on. 0 chooses 5 % of the disk, at most
	// 1 GiB and at least what flushing the memtables can need.
	DiskReserveBytes uint64
	// AcceptRollback opens a store that ends before the last acknowledged
	// command, and accepts that the commands between are lost.
	AcceptRollback bool

	// FS is the file system, vfs.Default in production.
	FS vfs.FS
	// Now is the wall clock.
	Now func() time.Time
	// Logger receives what the engine reports.
	Logger *slog.Logger
	// OnCommit, when not nil, is told about each group of commands that became
	// durable. It runs on the committer and must not block.
	OnCommit func(Commit)
	// OnFatal is called, at most once, when the store cannot go on: a sync failed,
	// and what the log holds is unknown. The process must end; nothing further is
	// acknowledged. The default exits with status 1. It must not return in
	// production: where the engine itself gives up, it would panic.
	OnFatal func(error)
}

// Commit describes one group of commands that became durable together.
type Commit struct {
	Commands int           // commands acknowledged
	Changes  int           // facts changed
	Wait     time.Duration // how long its oldest command had waited in the queue
}

// DefaultConfig returns settings for a machine with two cores that also runs
// other things.
func DefaultConfig() Config {
	return Config{
		CacheBytes:    32 << 20,
		MemtableBytes: 8 << 20,
		FilterBytes:   32 << 20,
		QueueLength:   16 << 10,
		QueueAge:      time.Second,
		FS:            vfs.Default,
		Now:           time.Now,
		Logger:        slog.New(slog.DiscardHandler),
		OnFatal:       func(error) { os.Exit(1) },
	}
}

// Validate reports, as like.ErrInvalid, a setting that cannot work.
func (c Config) Validate() error {
	switch {
	case c.Dir == "":
		return fmt.Errorf("%w: ledger directory is empty", like.ErrInvalid)
	case c.CacheBytes < 1<<20:
		return fmt.Errorf("%w: cache must be at least 1 MiB", like.ErrInvalid)
	case c.MemtableBytes < 1<<20 || c.MemtableBytes > 1<<30:
		return fmt.Errorf("%w: memtable must be between 1 MiB and 1 GiB", like.ErrInvalid)
	case c.FilterBytes < 0:
		return fmt.Errorf("%w: filter size is negative", like.ErrInvalid)
	case c.QueueLength < 1:
		return fmt.Errorf("%w: queue length must be at least 1", like.ErrInvalid)
	case c.QueueAge < time.Millisecond:
		return fmt.Errorf("%w: queue age must be at least 1ms", like.ErrInvalid)
	}
	return nil
}

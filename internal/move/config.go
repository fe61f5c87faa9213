package move

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// ErrDiffers says that the two ledgers are not equal after all.
var ErrDiffers = errors.New("the ledgers differ")

// ErrNotEmpty says that the target holds facts already. It is a [like.ErrInvalid].
var ErrNotEmpty = fmt.Errorf("%w: the target holds likes already", like.ErrInvalid)

// Lister shows facts.
type Lister interface {
	Export(ctx context.Context) iter.Seq2[like.Fact, error]
	Likers(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error)
}

// Source is what is moved from.
type Source interface {
	Lister
	ledger.Feeder
	ledger.Freezer
}

// Target is what is moved to. Nobody else writes to it during the run.
type Target interface {
	Lister
	ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error)
}

// Config says how to move. Start from [DefaultConfig].
type Config struct {
	// Resume lets the target hold facts already. It is made equal to the source, so
	// that facts which only it has are removed.
	Resume bool
	// Freeze lets the source stand still at the end. Without it the run ends with
	// two ledgers that were equal but for what changed meanwhile.
	Freeze bool
	// VerifyAll compares everything while the source stands still. Without it only
	// what changed since everything was compared is compared then, so that the
	// standstill does not grow with the ledger.
	VerifyAll bool
	// Switch is called once, when both ledgers are equal and the source stands
	// still, which it does until the return. Its context is done when the standstill
	// is lost, with the cause. Nil returns at once.
	Switch func(ctx context.Context, r Report) error

	// BatchSize is the number of commands sent together, at most ledger.MaxBatch, and
	// InFlight the number of batches, and of items compared, at one time.
	BatchSize, InFlight int
	// Settle is how long the feed must have been silent, with the source standing
	// still, to have named everything: a little more than totals lag behind.
	Settle time.Duration
	// Patience is how long a call is repeated that finds a ledger busy or away.
	Patience time.Duration
	// Out takes notes; with Terminal also what is under way.
	Out      io.Writer
	Terminal bool
}

// DefaultConfig returns a move that ends with a standstill and compares everything.
func DefaultConfig() Config {
	return Config{
		Freeze: true, VerifyAll: true,
		BatchSize: ledger.MaxBatch, InFlight: 4,
		Settle: 2 * time.Second, Patience: time.Minute,
		Out: io.Discard,
	}
}

// Validate reports, as [like.ErrInvalid], why the settings cannot work.
func (c Config) Validate() error {
	switch {
	case c.BatchSize < 1 || c.BatchSize > ledger.MaxBatch:
		return fmt.Errorf("%w: commands of a batch must be from 1 to %d", like.ErrInvalid, ledger.MaxBatch)
	case c.InFlight < 1:
		return fmt.Errorf("%w: batches in flight must be at least 1", like.ErrInvalid)
	case c.Settle < 0 || c.Patience < 0:
		return fmt.Errorf("%w: times must not be negative", like.ErrInvalid)
	}
	return nil
}

// Report is what a run did.
type Report struct {
	Likes   int64 // facts of the source when everything was last compared
	Copied  int64 // likes sent by the copy
	Changed int64 // likes and unlikes sent because an item differed
	// Frozen is how long the source has stood still before Switch was called.
	Frozen time.Duration
}

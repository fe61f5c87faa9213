package counts

import (
	"fmt"
	"time"

	"likewise/internal/like"
)

// Config is how much is cached and for how long.
type Config struct {
	// Items is how many totals are kept; one takes about 250 bytes.
	Items int
	// RefreshAfter is the age from which a total is read again behind the answer
	// that it still serves. From five times that age an answer waits for the ledger.
	RefreshAfter time.Duration
	// ExpireAfter is the age up to which a total is served, marked with its age,
	// while the ledger fails.
	ExpireAfter time.Duration
	// LoadTimeout bounds one read of the ledger; a slower one has failed.
	LoadTimeout time.Duration
	// MaxLoads is how many reads of the ledger, or of each of its shards, may be under
	// way at one time, so that readers without a cache do not bury it. One more waits a tenth of
	// LoadTimeout for its turn; then cached totals are served with their age, and
	// an item that is not cached is [like.ErrOverloaded].
	MaxLoads int
}

// DefaultConfig returns the settings of a node that nobody tuned.
func DefaultConfig() Config {
	return Config{
		Items:        100_000,
		RefreshAfter: time.Second,
		ExpireAfter:  time.Minute,
		LoadTimeout:  time.Second,
		MaxLoads:     64,
	}
}

// Validate reports, as [like.ErrInvalid], which setting cannot work.
func (c Config) Validate() error {
	switch {
	case c.Items < 1:
		return fmt.Errorf("%w: counts: items must be at least 1", like.ErrInvalid)
	case c.MaxLoads < 1:
		return fmt.Errorf("%w: counts: max-loads must be at least 1", like.ErrInvalid)
	case c.RefreshAfter <= 0 || c.LoadTimeout <= 0:
		return fmt.Errorf("%w: counts: refresh-after and load-timeout must be positive", like.ErrInvalid)
	case c.ExpireAfter < c.RefreshAfter:
		return fmt.Errorf("%w: counts: expire-after must not be below refresh-after", like.ErrInvalid)
	}
	return nil
}

// waitAfter is the age from which an answer waits for the ledger.
func (c Config) waitAfter() time.Duration { return min(5*c.RefreshAfter, c.ExpireAfter) }

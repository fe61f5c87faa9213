package counts

import (
	"context"
	"fmt"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// shard is how one of the ledger's shards is read. Each is read apart from the others,
// so that one that is away is felt only by those who want something of it.
type shard struct {
	places       chan struct{}  // taken by loads under way
	behind       chan like.Item // items to read again behind an answer
	failingUntil moment         // it failed lately; do not let answers wait for it
}

func newShards(n, maxLoads int) []*shard {
	shards := make([]*shard, n)
	for i := range shards {
		shards[i] = &shard{places: make(chan struct{}, maxLoads), behind: make(chan like.Item, ledger.MaxItems)}
	}
	return shards
}

func (c *Counts) shard(item like.Item) *shard { return c.shards[c.shardOf(item)] }

// failed lets answers not wait for the shard for long enough that a reader behind them
// finds out how it is.
func (c *Counts) failed(s *shard) {
	s.failingUntil.Store(c.now() + int64(c.cfg.LoadTimeout+c.cfg.RefreshAfter))
}

// takePlace waits a moment for a place among the loads. A longer queue would only
// hold answers that nobody waits for any more. The caller calls leave.
func (c *Counts) takePlace(ctx context.Context, s *shard) (leave func(), err error) {
	leave = func() { <-s.places }
	select {
	case s.places <- struct{}{}:
		return leave, nil
	default:
	}
	patience := time.NewTimer(c.cfg.LoadTimeout / 10)
	defer patience.Stop()
	select {
	case s.places <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-patience.C:
		c.metrics.loadsRefused.Inc()
		return nil, errBusy
	}
}

var errBusy = fmt.Errorf("%w: too many reads of totals from the ledger at one time", like.ErrOverloaded)

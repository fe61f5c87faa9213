package counts

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

const (
	refreshers = 2                      // loads of a shard behind answers at one time
	pause      = 100 * time.Millisecond // between attempts while the ledger fails
)

// Run keeps cached totals fresh until ctx is done, and then returns nil. It
// follows the ledger's feed and reads ageing totals again behind the answers that
// asked for them. What was cached before a feed became live may have missed
// changes, so it is due for a refresh. Its goroutines have ended when Run returns.
// It returns [like.ErrClosed] when the ledger closes first.
func (c *Counts) Run(ctx context.Context, feeder ledger.Feeder) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, s := range c.shards {
		for range refreshers {
			wg.Go(func() { c.refresh(ctx, s) })
		}
	}
	return ledger.Follow(ctx, feeder, ledger.Follower{
		Live: func() { c.rereadBefore.Store(c.now()) },
		Changed: func(totals []like.Total) {
			now := c.now()
			for _, t := range totals {
				c.storeHeld(t, now)
			}
		},
		Lost: func(err error) {
			c.metrics.feedRestarts.Inc()
			slog.WarnContext(ctx, "feed of totals ended early", "component", "counts", "error", err)
		},
	})
}

// refreshBehind asks for one entry to be read again. When too many are waiting it
// is left to the next reader.
func (c *Counts) refreshBehind(item like.Item, e *entry) {
	if e.refreshing.Load() || !e.refreshing.CompareAndSwap(false, true) {
		return
	}
	select {
	case c.shard(item).behind <- item:
	default:
		e.refreshing.Store(false)
	}
}

func (c *Counts) refresh(ctx context.Context, s *shard) {
	batch := make([]like.Item, 0, ledger.MaxItems)
	for {
		select {
		case <-ctx.Done():
			return
		case item := <-s.behind:
			batch = s.drain(append(batch[:0], item))
		}
		_, err := c.load(ctx, s, batch)
		for _, item := range batch {
			if e, ok := c.cache.GetEntryQuietly(item); ok {
				e.Value.refreshing.Store(false)
			}
		}
		if err != nil && !sleep(ctx, pause) {
			return
		}
	}
}

// drain adds what is waiting already, so that one call reads it all.
func (s *shard) drain(batch []like.Item) []like.Item {
	for len(batch) < cap(batch) {
		select {
		case item := <-s.behind:
			batch = append(batch, item)
		default:
			return batch
		}
	}
	return batch
}

// sleep waits and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

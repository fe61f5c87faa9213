package counts

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"likewise/internal/like"
)

// flights are the loads under way. Of all readers who miss an item one loads it,
// on its own goroutine and with its own context; the others wait.
type flights struct {
	mu     sync.Mutex
	byItem map[like.Item]*flight
}

// flight is one load: written by its leader, read by others after done is closed.
type flight struct {
	done    chan struct{}
	items   []like.Item
	entries map[like.Item]*entry
	err     error
}

// errAbandoned says that a load ended because its leader's context did: those who
// waited for it try again.
var errAbandoned = errors.New("load was abandoned")

// join fills the missing places of a page. Items that nobody is loading are
// loaded with one call.
func (c *Counts) join(ctx context.Context, page []Entry, missing []int) error {
	for len(missing) > 0 {
		own, of := c.flights.claim(page, missing)
		if len(own.items) > 0 {
			c.fly(ctx, own)
		}
		again := missing[:0:0]
		for k, i := range missing {
			select {
			case <-of[k].done:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			switch err := of[k].err; {
			case err == nil:
				e := of[k].entries[page[i].Total.Item]
				page[i].Total.Count, page[i].Total.Version = e.count, e.version
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, errAbandoned):
				again = append(again, i)
			default:
				return err
			}
		}
		missing = again
	}
	return nil
}

// claim returns the flight of each missing place. own is the one that the caller
// must fly, for the items that had none.
func (f *flights) claim(page []Entry, missing []int) (own *flight, of []*flight) {
	own = &flight{done: make(chan struct{})}
	of = make([]*flight, len(missing))
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, i := range missing {
		item := page[i].Total.Item
		other, ok := f.byItem[item]
		if !ok {
			other = own
			own.items = append(own.items, item)
			f.byItem[item] = own
		}
		of[k] = other
	}
	return own, of
}

// land publishes a flight's outcome. It also runs when the load panics, so that
// nobody waits for ever.
func (f *flights) land(own *flight) {
	f.mu.Lock()
	for _, item := range own.items {
		delete(f.byItem, item)
	}
	f.mu.Unlock()
	close(own.done)
}

func (c *Counts) fly(ctx context.Context, own *flight) {
	own.err = errAbandoned
	defer c.flights.land(own)
	entries, err := c.load(ctx, own.items)
	if err != nil {
		if ctx.Err() == nil {
			own.err = err
		}
		return
	}
	own.entries, own.err = entries, nil
}

// load reads totals from the ledger and caches them. Of each item it returns the
// newest total known by then.
func (c *Counts) load(ctx context.Context, items []like.Item) (map[like.Item]*entry, error) {
	bounded, cancel := c.bounded(ctx)
	defer cancel()
	read := c.now()
	c.metrics.loads.Inc()
	totals, err := c.ledger.Totals(bounded, items)
	if err == nil && len(totals) != len(items) {
		err = fmt.Errorf("%w: ledger answered %d of %d items", like.ErrCorrupt, len(totals), len(items))
	}
	if err != nil {
		c.metrics.loadErrors.Inc()
		if ctx.Err() == nil && storeFailed(err) {
			// Long enough for a reader behind the answers to find out again.
			c.failingUntil.Store(c.now() + int64(c.cfg.LoadTimeout+c.cfg.RefreshAfter))
		}
		return nil, err
	}
	c.failingUntil.Store(0)
	entries := make(map[like.Item]*entry, len(items))
	for i, t := range totals {
		t.Item = items[i]
		entries[t.Item] = c.store(t, read)
	}
	return entries, nil
}

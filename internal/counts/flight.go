package counts

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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
	answers answers
	err     error
}

// answers are what a load found.
type answers map[like.Item]answer

type answer struct {
	*entry
	shared bool // from the shared cache, not from the ledger
}

// errAbandoned says that a load ended because its leader's context did: those who
// waited for it try again.
var errAbandoned = errors.New("load was abandoned")

// join fills the missing places of a page and returns how many of them the shared
// cache filled. Items that nobody is loading are loaded with one call.
func (c *Counts) join(ctx context.Context, page []Entry, missing []int) (shared int, err error) {
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
				return shared, context.Cause(ctx)
			}
			switch err := of[k].err; {
			case err == nil:
				a := of[k].answers[page[i].Total.Item]
				page[i].Total.Count, page[i].Total.Version = a.count, a.version
				if a.shared {
					shared++
				}
			case ctx.Err() != nil:
				return shared, context.Cause(ctx)
			case errors.Is(err, errAbandoned):
				again = append(again, i)
			default:
				return shared, err
			}
		}
		missing = again
	}
	return shared, nil
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
	found, err := c.load(ctx, own.items)
	if err != nil {
		if ctx.Err() == nil {
			own.err = err
		}
		return
	}
	own.answers, own.err = found, nil
}

// load reads totals from the shared cache, and from the ledger what is missing
// there, and caches them. Of each item it returns the newest total known by then.
func (c *Counts) load(ctx context.Context, items []like.Item) (answers, error) {
	bounded, cancel := c.bounded(ctx)
	defer cancel()
	found := make(answers, len(items))
	items = c.fromShared(bounded, items, found)
	if len(items) == 0 {
		return found, nil
	}
	read := c.now()
	totals, err := c.readLedger(bounded, items)
	if err != nil {
		if ctx.Err() == nil && storeFailed(err) {
			// Long enough for a reader behind the answers to find out again.
			c.failingUntil.Store(c.now() + int64(c.cfg.LoadTimeout+c.cfg.RefreshAfter))
		}
		return nil, err
	}
	c.failingUntil.Store(0)
	for i := range totals {
		totals[i].Item = items[i]
		found[items[i]] = answer{entry: c.store(totals[i], read)}
	}
	if c.shared != nil {
		c.shared.Put(totals)
	}
	return found, nil
}

// readLedger reads totals from the ledger, in a place among the few that may do so
// at one time.
func (c *Counts) readLedger(ctx context.Context, items []like.Item) ([]like.Total, error) {
	if err := c.takePlace(ctx); err != nil {
		return nil, err
	}
	defer func() { <-c.places }()
	c.metrics.loads.Inc()
	totals, err := c.ledger.Totals(ctx, items)
	if err == nil && len(totals) != len(items) {
		err = fmt.Errorf("%w: ledger answered %d of %d items", like.ErrCorrupt, len(totals), len(items))
	}
	if err != nil {
		c.metrics.loadErrors.Inc()
	}
	return totals, err
}

// takePlace waits a moment for a place among the loads. A longer queue would only
// hold answers that nobody waits for any more.
func (c *Counts) takePlace(ctx context.Context) error {
	select {
	case c.places <- struct{}{}:
		return nil
	default:
	}
	patience := time.NewTimer(c.cfg.LoadTimeout / 10)
	defer patience.Stop()
	select {
	case c.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-patience.C:
		c.metrics.loadsRefused.Inc()
		return errBusy
	}
}

var errBusy = fmt.Errorf("%w: too many reads of totals from the ledger at one time", like.ErrOverloaded)

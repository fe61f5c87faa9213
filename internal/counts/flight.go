package counts

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	to      *shard
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
// cache filled. Items that nobody is loading are loaded with one call to each shard.
func (c *Counts) join(ctx context.Context, page []Entry, missing []int) (shared int, err error) {
	for len(missing) > 0 {
		own, of := c.claim(page, missing)
		c.fly(ctx, own)
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

// claim returns the flight of each missing place. own are those that the caller must
// fly, one for each shard that has items without a flight.
func (c *Counts) claim(page []Entry, missing []int) (own, of []*flight) {
	of = make([]*flight, len(missing))
	f := &c.flights
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, i := range missing {
		item := page[i].Total.Item
		if f.byItem[item] == nil {
			own = c.addTo(own, item)
		}
		of[k] = f.byItem[item]
	}
	return own, of
}

// addTo puts an item on the flight to its shard.
func (c *Counts) addTo(own []*flight, item like.Item) []*flight {
	s := c.shard(item)
	at := slices.IndexFunc(own, func(f *flight) bool { return f.to == s })
	if at < 0 {
		at, own = len(own), append(own, &flight{to: s, done: make(chan struct{})})
	}
	own[at].items = append(own[at].items, item)
	c.flights.byItem[item] = own[at]
	return own
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

// fly flies all at once, so that nobody else waits longer than for their own shard.
func (c *Counts) fly(ctx context.Context, own []*flight) {
	if len(own) == 0 {
		return
	}
	var others sync.WaitGroup
	defer others.Wait()
	for _, f := range own[1:] {
		others.Go(func() { c.flyOne(ctx, f) })
	}
	c.flyOne(ctx, own[0])
}

func (c *Counts) flyOne(ctx context.Context, own *flight) {
	own.err = errAbandoned
	defer c.flights.land(own)
	found, err := c.load(ctx, own.to, own.items)
	if err != nil {
		if ctx.Err() == nil {
			own.err = err
		}
		return
	}
	own.answers, own.err = found, nil
}

// load reads totals of one shard from the shared cache, and from the ledger what is
// missing there, and caches them. Of each item it returns the newest total known by then.
func (c *Counts) load(ctx context.Context, s *shard, items []like.Item) (answers, error) {
	bounded, cancel := c.bounded(ctx)
	defer cancel()
	found := make(answers, len(items))
	items = c.fromShared(bounded, items, found)
	if len(items) == 0 {
		return found, nil
	}
	read := c.now()
	totals, err := c.readLedger(bounded, s, items)
	if err != nil {
		if ctx.Err() == nil && storeFailed(err) {
			c.failed(s)
		}
		return nil, err
	}
	s.failingUntil.Store(0)
	for i := range totals {
		totals[i].Item = items[i]
		found[items[i]] = answer{entry: c.confirm(totals[i], read)}
	}
	if c.shared != nil {
		c.shared.Put(totals)
	}
	return found, nil
}

// readLedger reads totals from the ledger, in a place among the few that may do so
// at one time.
func (c *Counts) readLedger(ctx context.Context, s *shard, items []like.Item) ([]like.Total, error) {
	leave, err := c.takePlace(ctx, s)
	if err != nil {
		return nil, err
	}
	defer leave()
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

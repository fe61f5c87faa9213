package counts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Counts answers pages of counts. It is safe for concurrent use. New starts
// nothing: Page works by itself, and Run keeps what is cached fresh.
type Counts struct {
	ledger  ledger.Reader
	shared  Shared // nil without one
	cfg     Config
	metrics metrics
	cache   *otter.Cache[like.Item, *entry]
	flights flights
	shards  []*shard // of the ledger
	shardOf func(like.Item) int
	start   time.Time // origin of all moments

	rereadBefore moment // what was read before this is due for a refresh
}

// Entry is the answer for one item.
type Entry struct {
	// Total of the item. Its Count is at least 1 when the viewer likes the item,
	// however far totals lag behind.
	Total like.Total
	// Liked says whether the viewer likes the item; false without a viewer.
	Liked bool
	// Age is 0 for a fresh total. Otherwise the ledger could not be read, and the
	// total was last known to be right this long ago.
	Age time.Duration
}

// New returns the read path over a ledger. shared may be nil, and reg. cfg must be
// valid.
func New(r ledger.Reader, shared Shared, cfg Config, reg prometheus.Registerer) *Counts {
	c := &Counts{
		ledger:  r,
		shared:  shared,
		cfg:     cfg,
		flights: flights{byItem: map[like.Item]*flight{}},
		start:   time.Now(),
	}
	n, shardOf := ledger.Shards(r)
	c.shards, c.shardOf = newShards(n, cfg.MaxLoads), shardOf
	c.cache = otter.Must(&otter.Options[like.Item, *entry]{
		MaximumSize: cfg.Items,
		// Maintenance on the caller's goroutine: there is none without an owner.
		Executor: func(fn func()) { fn() },
	})
	c.metrics = newMetrics(reg, func() float64 { return float64(c.cache.EstimatedSize()) })
	return c
}

// Page returns one entry per item, in request order, repeats allowed. Without a
// viewer ("") no entry is liked. It fails as a whole: with the ledger's error
// when a total is neither cached nor readable or the viewer's own state is not,
// and with the cause of a done context.
func (c *Counts) Page(ctx context.Context, viewer like.User, items []like.Item) ([]Entry, error) {
	if len(items) > ledger.MaxItems {
		return nil, fmt.Errorf("%w: more than %d items in one call", like.ErrInvalid, ledger.MaxItems)
	}
	page := make([]Entry, len(items))
	if missing := c.fromCache(page, items); len(missing) > 0 {
		if err := c.fromBehind(ctx, page, missing); err != nil {
			return nil, err
		}
	}
	if viewer != "" {
		if err := c.fillLiked(ctx, page, viewer, items); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// Observe tells what a total is, as the acknowledgement of a command does. One
// that is older than what is cached, or has no version, changes nothing.
func (c *Counts) Observe(t like.Total) {
	if t.Version != 0 {
		c.store(t, c.now())
	}
}

// fromCache fills what the cache can answer and returns the places of the rest.
func (c *Counts) fromCache(page []Entry, items []like.Item) (missing []int) {
	now := c.now()
	due := max(now-int64(c.cfg.RefreshAfter), c.rereadBefore.Load())
	wait := now - int64(c.cfg.waitAfter())
	expired := now - int64(c.cfg.ExpireAfter)
	for i, item := range items {
		page[i].Total.Item = item
		e, ok := c.cache.GetIfPresent(item)
		if !ok {
			missing = append(missing, i)
			continue
		}
		read := e.read.Load()
		if read <= expired || read <= wait && now >= c.shard(item).failingUntil.Load() {
			missing = append(missing, i)
			continue
		}
		c.fill(&page[i], e, now-read)
		if read <= due {
			c.refreshBehind(item, e)
		}
	}
	c.metrics.fromL1.Add(float64(len(items) - len(missing)))
	return missing
}

// fromBehind fills the missing places from the shared cache and the ledger or, where
// that fails, from cached totals that may still be shown with their age.
func (c *Counts) fromBehind(ctx context.Context, page []Entry, missing []int) error {
	shared, err := c.join(ctx, page, missing)
	if err == nil {
		c.metrics.fromShared.Add(float64(shared))
		c.metrics.fromLedger.Add(float64(len(missing) - shared))
		return nil
	}
	if ctx.Err() != nil || !storeFailed(err) {
		return err
	}
	now := c.now()
	for _, i := range missing {
		e, ok := c.cache.GetIfPresent(page[i].Total.Item)
		if !ok {
			return err
		}
		age := now - e.read.Load()
		if age >= int64(c.cfg.ExpireAfter) {
			return err
		}
		c.fill(&page[i], e, age)
	}
	c.metrics.fromL1.Add(float64(len(missing)))
	return nil
}

func (c *Counts) fill(to *Entry, e *entry, age int64) {
	to.Total.Count, to.Total.Version = e.count, e.version
	if age >= int64(c.cfg.waitAfter()) {
		to.Age = time.Duration(age)
		c.metrics.stale.Inc()
	}
}

func (c *Counts) fillLiked(ctx context.Context, page []Entry, viewer like.User, items []like.Item) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	states, err := c.ledger.Liked(ctx, viewer, items)
	if err != nil {
		return err
	}
	for i, s := range states {
		if s.Liked {
			page[i].Liked = true
			page[i].Total.Count = max(page[i].Total.Count, 1)
		}
	}
	return nil
}

// bounded gives one read of the ledger its time limit.
func (c *Counts) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.cfg.LoadTimeout, errSlow)
}

var errSlow = fmt.Errorf("%w: ledger did not answer a read in time", like.ErrUnavailable)

// storeFailed tells a ledger that cannot answer from one that refuses to.
func storeFailed(err error) bool {
	return errors.Is(err, like.ErrUnavailable) || errors.Is(err, like.ErrOverloaded)
}

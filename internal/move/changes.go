package move

import (
	"context"
	"sync"
	"time"

	"likewise/internal/like"
)

// maxChanged bounds the set of changed items; with names of usual length it takes
// about 100 MiB.
const maxChanged = 1 << 20

// changes is the set of items that may differ. Safe for concurrent use.
type changes struct {
	limit int
	begun chan struct{} // closed when it is known whether the feed is live
	once  sync.Once

	mu    sync.Mutex
	items map[like.Item]struct{}
	all   bool // a comparison of everything is owed
	live  bool // whether the feed names what changes now
	last  time.Time
}

// newChanges returns a set that owes everything.
func newChanges(limit int) *changes {
	return &changes{
		limit: limit, begun: make(chan struct{}), items: map[like.Item]struct{}{}, all: true, last: time.Now(),
	}
}

// add adds an item. Beyond the limit a comparison of everything is owed instead.
func (c *changes) add(items ...like.Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	for _, item := range items {
		if len(c.items) >= c.limit {
			c.all = true
			return
		}
		c.items[item] = struct{}{}
	}
}

// take empties the set.
func (c *changes) take() []like.Item {
	c.mu.Lock()
	defer c.mu.Unlock()
	items := make([]like.Item, 0, len(c.items))
	for item := range c.items {
		items = append(items, item)
	}
	clear(c.items)
	return items
}

// owesAll reports whether a comparison of everything is owed.
func (c *changes) owesAll() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// beginAll is called before everything is compared. The debt stays while the feed
// does not name what changes meanwhile.
func (c *changes) beginAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = !c.live
}

// setLive notes whether the feed names what changes. What it did not name before
// is owed.
func (c *changes) setLive(live bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live, c.all = live, true
	c.once.Do(func() { close(c.begun) })
}

// oweAll notes that everything has to be compared again.
func (c *changes) oweAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = true
}

// silence is how long nothing was added.
func (c *changes) silence() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.last)
}

// still returns those of the items that have not changed since take, as far as is
// known.
func (c *changes) still(items []like.Item) []like.Item {
	c.mu.Lock()
	defer c.mu.Unlock()
	var still []like.Item
	for _, item := range items {
		if _, changed := c.items[item]; !changed && !c.all {
			still = append(still, item)
		}
	}
	return still
}

// follow adds what the source's feed names, until ctx is done. A feed that ends is
// begun again.
func (m *mover) follow(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		var cause error
		live := false
		for batch, err := range m.source.Feed(ctx) {
			if cause = err; err != nil {
				break
			}
			if !live {
				live, pause = true, firstPause
				m.changes.setLive(true)
			}
			for _, t := range batch {
				m.changes.add(t.Item)
			}
		}
		if ctx.Err() != nil {
			return
		}
		m.changes.setLive(false)
		m.show.notef("the source does not say what changes (%v); everything will be compared again", cause)
		if rest(ctx, pause) != nil {
			return
		}
	}
}

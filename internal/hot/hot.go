// Package hot finds the items whose totals move most, in bounded memory and without
// a part in any like: it follows the ledger's feed.
//
// Each item has a score that grows by the likes it won or lost and fades away with
// time. When there is no more room, the lower half of the items is forgotten. So an
// item that is hotter than half of those that are kept is never lost, and what is
// shown of the hottest few is exact but for changes that cancel each other between
// two batches of the feed.
package hot

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

const (
	capacity = 4096             // items that are followed
	fading   = 10 * time.Second // in which a score falls to about a third
)

// Items follows what is liked. It is safe for concurrent use.
type Items struct {
	log *slog.Logger

	mu      sync.Mutex
	entries map[like.Item]*entry // guarded by mu
}

type entry struct {
	item    like.Item
	count   int64
	version uint64
	score   float64 // at the time below
	at      time.Time
}

// Item is one hot item.
type Item struct {
	like.Item
	PerSecond float64 // likes won or lost, over about the last ten seconds
	Count     int64
}

// New returns a follower that knows nothing yet, and starts nothing.
func New(log *slog.Logger) *Items {
	return &Items{log: log.With("component", "hot"), entries: map[like.Item]*entry{}}
}

// Run follows the feed until ctx is done, and then returns nil. It returns
// [like.ErrClosed] when the ledger closes first.
func (h *Items) Run(ctx context.Context, feeder ledger.Feeder) error {
	return ledger.Follow(ctx, feeder, ledger.Follower{
		Live:    func() {},
		Changed: func(totals []like.Total) { h.observe(totals, time.Now()) },
		Lost: func(err error) {
			h.log.WarnContext(ctx, "feed of totals ended early", "error", err)
		},
	})
}

func (h *Items) observe(totals []like.Total, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range totals {
		e := h.entries[t.Item]
		if e == nil {
			if len(h.entries) >= capacity {
				h.forget(now)
			}
			// What it was before is not known; it moved by one at least.
			e = &entry{item: t.Item, count: t.Count - 1, at: now}
			h.entries[t.Item] = e
		} else if t.Version <= e.version {
			continue // a merged feed tells some totals twice or late
		}
		moved := math.Abs(float64(t.Count - e.count))
		e.score, e.count, e.version, e.at = e.faded(now)+moved, t.Count, t.Version, now
	}
}

// faded is what is left of a score.
func (e *entry) faded(now time.Time) float64 {
	return e.score * math.Exp(-now.Sub(e.at).Seconds()/fading.Seconds())
}

// forget drops the lower half of the items.
func (h *Items) forget(now time.Time) {
	for _, e := range h.ranked(now)[capacity/2:] {
		delete(h.entries, e.item)
	}
}

// ranked lists the entries, the hottest first, with their scores brought up to now.
func (h *Items) ranked(now time.Time) []*entry {
	all := make([]*entry, 0, len(h.entries))
	for _, e := range h.entries {
		e.score, e.at = e.faded(now), now
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.item.String(), b.item.String()))
	})
	return all
}

// coldest is the rate below which an item is not hot at all.
const coldest = 0.05

// Top returns at most n items, the hottest first.
func (h *Items) Top(n int) []Item {
	h.mu.Lock()
	defer h.mu.Unlock()
	top := []Item{}
	for _, e := range h.ranked(time.Now()) {
		perSecond := e.score / fading.Seconds()
		if len(top) == n || perSecond < coldest {
			break
		}
		top = append(top, Item{Item: e.item, PerSecond: perSecond, Count: e.count})
	}
	return top
}

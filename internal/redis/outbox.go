package redis

import (
	"strings"
	"sync"

	"likewise/internal/like"
)

const (
	maxOffers = 1 << 16 // items that wait to be written
	maxBatch  = 256     // totals of one call
)

// outbox holds the totals that wait to be written: of each item the newest.
type outbox struct {
	wake chan struct{} // holds one token while there is something to take

	mu     sync.Mutex
	offers map[like.Item]offer // guarded by mu
}

// offer is a total for the cache and, with tell, for all nodes.
type offer struct {
	total like.Total
	tell  bool
}

func newOutbox() outbox {
	return outbox{wake: make(chan struct{}, 1), offers: map[like.Item]offer{}}
}

// add returns how many totals found no room.
func (b *outbox) add(totals []like.Total, tell bool) (dropped int) {
	b.mu.Lock()
	for _, t := range totals {
		held, ok := b.offers[t.Item]
		switch {
		case !ok && len(b.offers) >= maxOffers:
			dropped++
			continue
		case !ok:
			// A copy, because an item cut out of a request keeps the whole request.
			t.Item = like.Item{Collection: strings.Clone(t.Item.Collection), ID: strings.Clone(t.Item.ID)}
		case held.total.Version >= t.Version:
			t = held.total
		default:
			t.Item = held.total.Item
		}
		b.offers[t.Item] = offer{t, tell || held.tell}
	}
	b.mu.Unlock()
	if len(totals) > 0 {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	return dropped
}

// take returns some of what waits, at most maxBatch, and nothing when nothing does.
func (b *outbox) take() []offer {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := make([]offer, 0, min(maxBatch, len(b.offers)))
	for item, o := range b.offers {
		if len(batch) == maxBatch {
			break
		}
		batch = append(batch, o)
		delete(b.offers, item)
	}
	return batch
}

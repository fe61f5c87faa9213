package counts

import (
	"context"

	"likewise/internal/like"
)

// Shared is a cache of totals that several nodes share. It is asked before the
// ledger, and it may forget anything at any time.
type Shared interface {
	// Get returns what is cached of each item, in request order; known says for
	// which. A total that is known was a total of the ledger. It takes a short,
	// bounded time whatever happens to the cache; what cannot be read is unknown.
	Get(ctx context.Context, items []like.Item) (totals []like.Total, known []bool)
	// Put offers totals that the ledger has just returned. It does not wait; an
	// older version never replaces a newer one. The slice stays the caller's.
	Put(totals []like.Total)
}

// fromShared adds what the shared cache has to found and returns the rest. A total
// that is older than the one in this process is of no use: a newer one was lost on
// its way there.
func (c *Counts) fromShared(ctx context.Context, items []like.Item, found answers) (missing []like.Item) {
	if c.shared == nil {
		return items
	}
	read := c.now()
	totals, known := c.shared.Get(ctx, items)
	for i, item := range items {
		if known[i] {
			t := like.Total{Item: item, Count: totals[i].Count, Version: totals[i].Version}
			if e := c.store(t, read); e.version == t.Version {
				found[item] = answer{entry: e, shared: true}
				continue
			}
		}
		missing = append(missing, item)
	}
	return missing
}

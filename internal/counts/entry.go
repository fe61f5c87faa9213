package counts

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"likewise/internal/like"
)

// moment is a monotonic time in nanoseconds since the start of a Counts.
type moment = atomic.Int64

// entry is one cached total. Count and version never change; a newer total is a
// new entry.
type entry struct {
	count      int64
	version    uint64
	stored     int64  // the moment when it came here
	read       moment // when this total was last known to be the current one
	refreshing atomic.Bool
}

func (c *Counts) now() int64 { return int64(time.Since(c.start)) }

// store caches a total that was current at the moment read, unless a newer one
// is cached, and returns the newest.
func (c *Counts) store(t like.Total, read int64) *entry {
	e, _ := c.cache.Compute(c.key(t.Item), func(old *entry, found bool) (*entry, otter.ComputeOp) {
		if !found {
			return c.newEntry(t, read), otter.WriteOp
		}
		return c.newer(old, t, read)
	})
	return e
}

// confirm is store for what the ledger answered to a read that began at the moment
// read. The ledger never goes back, unless it lost what it had, as a database does that
// fails over to a replica which was behind: then what was here before the read is gone.
func (c *Counts) confirm(t like.Total, read int64) *entry {
	e, _ := c.cache.Compute(c.key(t.Item), func(old *entry, found bool) (*entry, otter.ComputeOp) {
		if !found || t.Version < old.version && old.stored < read {
			return c.newEntry(t, read), otter.WriteOp
		}
		return c.newer(old, t, read)
	})
	return e
}

// storeHeld is store for an item that is cached already; another one is not
// worth a place only because it changed.
func (c *Counts) storeHeld(t like.Total, read int64) {
	held, ok := c.cache.GetEntryQuietly(t.Item)
	if !ok {
		return
	}
	c.cache.ComputeIfPresent(held.Key, func(old *entry) (*entry, otter.ComputeOp) {
		return c.newer(old, t, read)
	})
}

func (c *Counts) newEntry(t like.Total, read int64) *entry {
	e := &entry{count: t.Count, version: t.Version, stored: c.now()}
	e.read.Store(read)
	return e
}

// newer decides between a cached total and another. It runs under the cache's
// lock of the item.
func (c *Counts) newer(old *entry, t like.Total, read int64) (*entry, otter.ComputeOp) {
	switch {
	case t.Version > old.version:
		return c.newEntry(t, read), otter.WriteOp
	case t.Version == old.version:
		old.read.Store(max(old.read.Load(), read))
	}
	return old, otter.CancelOp
}

// key returns an item that the cache may keep: the one it already has, or a copy,
// because an item cut out of a request would keep the whole request alive.
func (c *Counts) key(item like.Item) like.Item {
	if held, ok := c.cache.GetEntryQuietly(item); ok {
		return held.Key
	}
	return like.Item{Collection: strings.Clone(item.Collection), ID: strings.Clone(item.ID)}
}

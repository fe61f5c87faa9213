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
	read       moment // when this total was last known to be the current one
	refreshing atomic.Bool
}

func (c *Counts) now() int64 { return int64(time.Since(c.start)) }

// store caches a total that was current at the moment read, unless a newer one
// is cached, and returns the newest.
func (c *Counts) store(t like.Total, read int64) *entry {
	e, _ := c.cache.Compute(c.key(t.Item), func(old *entry, found bool) (*entry, otter.ComputeOp) {
		if !found {
			return newEntry(t, read), otter.WriteOp
		}
		return newer(old, t, read)
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
		return newer(old, t, read)
	})
}

func newEntry(t like.Total, read int64) *entry {
	e := &entry{count: t.Count, version: t.Version}
	e.read.Store(read)
	return e
}

// newer decides between a cached total and another. It runs under the cache's
// lock of the item.
func newer(old *entry, t like.Total, read int64) (*entry, otter.ComputeOp) {
	switch {
	case t.Version > old.version:
		return newEntry(t, read), otter.WriteOp
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

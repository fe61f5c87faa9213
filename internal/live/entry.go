package live

import (
	"strings"
	"time"

	"likewise/internal/like"
)

// entry is one item that is watched, or was until lately. Guarded by Hub.mu.
type entry struct {
	total     like.Total // the newest that is known
	told      time.Time  // when the feed last told a newer one
	known     bool       // it was read, so that it can be shown
	dirty     bool       // it is newer than what is encoded
	changed   uint64     // sequence with which it was published
	encoded   []byte     // as published; never changed, only replaced
	reader    *reader    // of its shard
	load      *load      // the read that will make it known, if there is one
	audiences map[*audience]struct{}
	left      time.Time // when the last audience left
}

// idleEntry is an entry that nobody watched at a time, and maybe nobody does now.
type idleEntry struct {
	*entry
	left time.Time
}

// observe takes what the feed yields. What nobody watches is left out.
func (h *Hub) observe(totals []like.Total) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for _, t := range totals {
		if e := h.items[t.Item]; e != nil && t.Version > e.total.Version {
			e.told = now
			h.update(e, t)
		}
	}
}

// learn takes what a read brought that began at a time. Such a read sees what the feed
// told before: where it differs from that, the ledger has lost what was told, in a
// failover, however new the version seems.
//
// An item that was not known until now is published at once with a sequence of its
// own, because a client that left before may hold an older value of it.
func (h *Hub) learn(totals []like.Total, began time.Time) {
	fresh := false
	for _, t := range totals {
		e := h.items[t.Item]
		if e == nil {
			continue
		}
		if t.Version > e.total.Version || t != e.total && e.told.Before(began) {
			h.update(e, t)
		}
		if e.known {
			continue
		}
		if !fresh {
			fresh = true
			h.seq++
		}
		e.known, e.load = true, nil
		e.publish(h.seq)
	}
}

// update replaces the total that is known, and has it published.
func (h *Hub) update(e *entry, t like.Total) {
	e.total.Count, e.total.Version = t.Count, t.Version
	switch {
	case e.dirty:
		h.metrics.merged.Inc()
	case e.known:
		e.dirty = true
		h.dirty = append(h.dirty, e)
	}
}

func (e *entry) publish(seq uint64) {
	e.dirty, e.changed, e.encoded = false, seq, appendTotal(nil, e.total)
}

// entry returns the entry of an item and makes it when there is none.
func (h *Hub) entry(item like.Item) *entry {
	e := h.items[item]
	if e == nil {
		// A copy: an item cut out of a request would keep the whole request alive.
		item = like.Item{Collection: strings.Clone(item.Collection), ID: strings.Clone(item.ID)}
		e = &entry{
			total:     like.Total{Item: item},
			reader:    h.readers[h.shardOf(item)],
			audiences: map[*audience]struct{}{},
		}
		h.items[item] = e
	}
	return e
}

// unwatch takes an audience off an entry.
func (h *Hub) unwatch(e *entry, a *audience) {
	delete(e.audiences, a)
	if len(e.audiences) == 0 {
		e.left = time.Now()
		h.idle = append(h.idle, idleEntry{e, e.left})
	}
}

// forget removes entries that nobody has watched for long, and the oldest of too
// many. Whoever watches such an item again makes a new entry with a new sequence.
func (h *Hub) forget(now time.Time) {
	n := 0
	for _, i := range h.idle {
		if len(h.idle)-n <= h.cfg.IdleItems && now.Sub(i.left) < h.cfg.Linger {
			break
		}
		n++
		if len(i.audiences) == 0 && i.entry.left.Equal(i.left) && h.items[i.total.Item] == i.entry {
			delete(h.items, i.total.Item)
		}
	}
	clear(h.idle[:n])
	h.idle = h.idle[n:]
}

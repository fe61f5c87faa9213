package live

import (
	"strings"
	"time"

	"likewise/internal/like"
)

// entry is one item that is watched, or was until lately. Guarded by Hub.mu.
type entry struct {
	total     like.Total // the newest that is known
	known     bool       // it was read, so that it can be shown
	dirty     bool       // it is newer than what is encoded
	changed   uint64     // sequence with which it was published
	encoded   []byte     // as published; never changed, only replaced
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
	for _, t := range totals {
		if e := h.items[t.Item]; e != nil {
			h.update(e, t)
		}
	}
}

// learn takes what was read. An item that was not known until now is published at
// once with a sequence of its own, because a client that left before may hold an
// older value of it.
func (h *Hub) learn(totals []like.Total) {
	fresh := false
	for _, t := range totals {
		e := h.items[t.Item]
		if e == nil {
			continue
		}
		h.update(e, t)
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

// update keeps a total if it is newer than the one that is known.
func (h *Hub) update(e *entry, t like.Total) {
	if t.Version <= e.total.Version {
		return
	}
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
		e = &entry{total: like.Total{Item: item}, audiences: map[*audience]struct{}{}}
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

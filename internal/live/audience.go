package live

import (
	"hash/maphash"
	"slices"

	"likewise/internal/like"
)

// audience is the clients that watch the same set of items. Guarded by Hub.mu.
type audience struct {
	set     uint64 // hash of the set
	entries []*entry
	clients []*client
	at      uint64 // sequence of its last frame
	queued  bool   // it gets a frame in the flush that is being prepared
}

// audienceOf returns the audience of a set of items, with their entries. Loads that
// have to end before all entries are known are returned with it.
func (h *Hub) audienceOf(items []like.Item) (*audience, []*load) {
	entries := make([]*entry, 0, len(items))
	var set uint64
	for _, item := range items {
		e := h.entry(item)
		if !slices.Contains(entries, e) {
			entries = append(entries, e)
			set += maphash.Comparable(h.seed, item)
		}
	}
	var loads []*load
	for _, e := range entries {
		if l := e.need(); l != nil && !slices.Contains(loads, l) {
			loads = append(loads, l)
		}
	}
	if a := h.audiences[set]; a != nil && sameSet(a.entries, entries) {
		return a, loads
	}
	a := &audience{set: set, entries: slices.Clip(entries), at: h.seq}
	for _, e := range entries {
		e.audiences[a] = struct{}{}
	}
	if h.audiences[set] == nil {
		h.audiences[set] = a
	}
	return a, loads
}

// sameSet compares two lists of distinct entries.
func sameSet(a, b []*entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i, e := range b {
		if a[i] != e && !slices.Contains(a, e) {
			return false
		}
	}
	return true
}

// seat adds a client to an audience.
func (a *audience) seat(c *client) {
	c.audience, c.place = a, len(a.clients)
	a.clients = append(a.clients, c)
}

// leave frees a place in an audience. An audience without clients ends.
func (h *Hub) leave(a *audience, place int) {
	last := len(a.clients) - 1
	moved := a.clients[last]
	a.clients[place], a.clients[last] = moved, nil
	a.clients = a.clients[:last]
	if place < last {
		moved.place = place
	}
	if last > 0 {
		return
	}
	for _, e := range a.entries {
		h.unwatch(e, a)
	}
	if h.audiences[a.set] == a {
		delete(h.audiences, a.set)
	}
}

// news appends what the items of a client became after a sequence, and returns it
// with the sequence up to which the client is then told everything.
func (h *Hub) news(c *client, after uint64, to [][]byte) (encoded [][]byte, seq uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.audience == nil {
		return to, h.seq
	}
	return c.audience.news(after, to), h.seq
}

func (a *audience) news(after uint64, to [][]byte) [][]byte {
	for _, e := range a.entries {
		if e.known && e.changed > after {
			to = append(to, e.encoded)
		}
	}
	return to
}

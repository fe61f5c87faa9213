package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// reader is what is to be read of one shard. Each has a goroutine of its own, so that
// a shard that hangs holds up nobody who wants nothing of it.
type reader struct {
	work chan struct{} // holds one token while there is something to read

	// Guarded by Hub.mu.
	loading *load       // what the next read is to bring
	recheck []like.Item // what is to be read again
}

func newReaders(n int) []*reader {
	readers := make([]*reader, n)
	for i := range readers {
		readers[i] = &reader{work: make(chan struct{}, 1)}
	}
	return readers
}

// load is one read of totals that clients wait for. Those who need an item while
// another read is under way share the next one.
type load struct {
	items []like.Item   // guarded by Hub.mu until the load starts
	done  chan struct{} // closed at the end
	err   error         // readable after done
}

// need returns the load that makes an entry known, or nil when it is known.
func (e *entry) need() *load {
	if e.known {
		return nil
	}
	if r := e.reader; e.load == nil {
		if r.loading == nil {
			r.loading = &load{done: make(chan struct{})}
			signal(r.work)
		}
		r.loading.items = append(r.loading.items, e.total.Item)
		e.load = r.loading
	}
	return e.load
}

// recheckAll has every entry read again and reports whether there is one.
func (h *Hub) recheckAll() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.readers {
		r.recheck = nil // not reused: a read may be under way with some of it
	}
	for item, e := range h.items {
		e.reader.recheck = append(e.reader.recheck, item)
	}
	for _, r := range h.readers {
		if len(r.recheck) > 0 {
			signal(r.work)
		}
	}
	return len(h.items) > 0
}

// read is the one goroutine that reads totals of a shard. What clients wait for goes
// first.
func (h *Hub) read(ctx context.Context, r *reader) {
	defer h.abandon(r)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.work:
		}
		for h.readNext(ctx, r) {
		}
	}
}

// readNext does one load or one part of a recheck and reports whether there may be
// more to do.
func (h *Hub) readNext(ctx context.Context, r *reader) bool {
	if ctx.Err() != nil {
		return false
	}
	l, again := h.nextRead(r)
	switch {
	case l != nil:
		h.finish(l, h.fetch(ctx, l.items))
	case len(again) == 0:
		return false
	case h.fetch(ctx, again) != nil:
		h.mu.Lock()
		r.recheck = append(r.recheck, again...)
		h.mu.Unlock()
		return sleep(ctx, pause)
	}
	return true
}

func (h *Hub) nextRead(r *reader) (l *load, again []like.Item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l, r.loading = r.loading, nil; l == nil {
		n := min(len(r.recheck), ledger.MaxItems)
		again, r.recheck = r.recheck[:n:n], r.recheck[n:]
	}
	return l, again
}

// fetch reads totals and takes them in.
func (h *Hub) fetch(ctx context.Context, items []like.Item) error {
	for part := range slices.Chunk(items, ledger.MaxItems) {
		began := time.Now()
		totals, err := h.fetchPart(ctx, part)
		if err != nil {
			h.metrics.readFails.Inc()
			return err
		}
		h.mu.Lock()
		h.learn(totals, began)
		h.mu.Unlock()
	}
	return nil
}

func (h *Hub) fetchPart(ctx context.Context, items []like.Item) ([]like.Total, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.cfg.LoadTimeout, errSlow)
	defer cancel()
	return h.totals.Totals(ctx, items)
}

var errSlow = fmt.Errorf("%w: totals were not read in time", like.ErrUnavailable)

// finish tells those who wait for a load how it ended. Entries that it did not make
// known are free for the next load.
func (h *Hub) finish(l *load, err error) {
	h.mu.Lock()
	for _, item := range l.items {
		if e := h.items[item]; e != nil && e.load == l {
			e.load = nil
		}
	}
	h.mu.Unlock()
	l.err = err
	close(l.done)
}

// abandon fails the load that nobody will do any more.
func (h *Hub) abandon(r *reader) {
	h.mu.Lock()
	h.draining = true // no client adds another load
	l := r.loading
	r.loading = nil
	h.mu.Unlock()
	if l != nil {
		h.finish(l, errEnded)
	}
}

var errEnded = fmt.Errorf("%w: streams have ended here", like.ErrClosed)

// await waits for loads to end, and returns why an item that the client watches is
// unknown then. A load that failed may have brought some items before.
func (h *Hub) await(ctx context.Context, c *client, loads []*load) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*h.cfg.LoadTimeout, errSlow)
	defer cancel()
	var err error
	for _, l := range loads {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.done:
			err = cmp.Or(err, l.err)
		}
	}
	if err != nil && h.knows(c) {
		return nil
	}
	return err
}

// knows reports whether everything that a client watches can be shown.
func (h *Hub) knows(c *client) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.audience != nil && !slices.ContainsFunc(c.audience.entries, func(e *entry) bool { return !e.known })
}

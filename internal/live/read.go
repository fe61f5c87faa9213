package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// load is one read of totals that clients wait for. Those who need an item while
// another read is under way share the next one.
type load struct {
	items []like.Item   // guarded by Hub.mu until the load starts
	done  chan struct{} // closed at the end
	err   error         // readable after done
}

// need returns the load that makes an entry known, or nil when it is known.
func (h *Hub) need(e *entry) *load {
	if e.known {
		return nil
	}
	if e.load == nil {
		if h.loading == nil {
			h.loading = &load{done: make(chan struct{})}
			h.signal()
		}
		h.loading.items = append(h.loading.items, e.total.Item)
		e.load = h.loading
	}
	return e.load
}

func (h *Hub) signal() {
	select {
	case h.reads <- struct{}{}:
	default:
	}
}

// recheckAll has every entry read again and reports whether there is one.
func (h *Hub) recheckAll() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recheck = slices.Collect(maps.Keys(h.items))
	if len(h.recheck) > 0 {
		h.signal()
	}
	return len(h.recheck) > 0
}

// read is the one goroutine that reads totals. What clients wait for goes first.
func (h *Hub) read(ctx context.Context) {
	defer h.abandon()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.reads:
		}
		for h.readNext(ctx) {
		}
	}
}

// readNext does one load or one part of a recheck and reports whether there may be
// more to do.
func (h *Hub) readNext(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	l, again := h.nextRead()
	switch {
	case l != nil:
		h.finish(l, h.fetch(ctx, l.items))
	case len(again) == 0:
		return false
	case h.fetch(ctx, again) != nil:
		h.mu.Lock()
		h.recheck = append(h.recheck, again...)
		h.mu.Unlock()
		return sleep(ctx, pause)
	}
	return true
}

func (h *Hub) nextRead() (l *load, again []like.Item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l, h.loading = h.loading, nil; l == nil {
		n := min(len(h.recheck), ledger.MaxItems)
		again, h.recheck = h.recheck[:n:n], h.recheck[n:]
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
func (h *Hub) abandon() {
	h.mu.Lock()
	h.draining = true // no client adds another load
	l := h.loading
	h.loading = nil
	h.mu.Unlock()
	if l != nil {
		h.finish(l, errEnded)
	}
}

var errEnded = fmt.Errorf("%w: streams have ended here", like.ErrClosed)

// await waits for loads to end well.
func (h *Hub) await(ctx context.Context, loads []*load) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*h.cfg.LoadTimeout, errSlow)
	defer cancel()
	for _, l := range loads {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.done:
			if l.err != nil {
				return l.err
			}
		}
	}
	return nil
}

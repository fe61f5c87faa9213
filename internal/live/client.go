package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"likewise/internal/like"
)

// ErrTooMany says that a viewer has as many streams as one may have.
var ErrTooMany = errors.New("too many streams")

// Viewer is who opens a stream: a user, or somebody known by an address only.
type Viewer struct {
	User    like.User
	Address string // of the connection; counts only without a user
}

// client is one open stream. Its sink is set before it joins and never changes.
type client struct {
	sink
	hub    *Hub
	over   transport
	viewer Viewer
	beat   int // which of the hub's ticks brings its heartbeat

	// Guarded by hub.mu.
	audience *audience // nil when nothing is watched
	place    int       // in the audience
}

// sink is the connection of a client. No method blocks.
type sink interface {
	// offer hands over the frame of a flush and its text as an event of a stream,
	// which is the caller's again afterwards.
	offer(f frame, event []byte)
	// tick tells the time. A heartbeat may be due; a client that has not taken a
	// frame for too long is dropped.
	tick(now time.Time, due bool)
	// end tells the client to come back after a while and closes the stream soon.
	end(retry time.Duration)
	// stop closes the connection.
	stop()
}

// frame is what a set of items became up to a sequence since the frame before it.
type frame struct {
	set, to uint64
}

func (h *Hub) newClient(over transport, v Viewer) *client {
	if v.User != "" {
		v.Address = ""
	}
	return &client{hub: h, over: over, viewer: v, beat: rand.IntN(h.beats())}
}

// enter counts a new client, which has its sink, within the limits. Its owner
// calls remove.
func (h *Hub) enter(c *client) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.admit(c.viewer); err != nil {
		return err
	}
	h.count(c.viewer, 1)
	h.clients[c] = struct{}{}
	h.metrics.clients[c.over].Inc()
	return nil
}

func (h *Hub) admit(v Viewer) error {
	limit, open := h.cfg.MaxPerAddress, h.perAddr[v.Address]
	if v.User != "" {
		limit, open = h.cfg.MaxPerUser, h.perUser[v.User]
	}
	switch {
	case h.draining:
		return errEnded
	case len(h.clients) >= h.cfg.MaxStreams:
		h.metrics.refused.Inc()
		return fmt.Errorf("%w: %d streams are open", like.ErrOverloaded, len(h.clients))
	case limit > 0 && open >= limit:
		h.metrics.refused.Inc()
		return fmt.Errorf("%w: %d are open already; close one first", ErrTooMany, open)
	}
	return nil
}

func (h *Hub) count(v Viewer, by int) {
	if v.User != "" {
		if h.perUser[v.User] += by; h.perUser[v.User] == 0 {
			delete(h.perUser, v.User)
		}
		return
	}
	if h.perAddr[v.Address] += by; h.perAddr[v.Address] == 0 {
		delete(h.perAddr, v.Address)
	}
}

// join makes a client watch exactly the given items, and waits until all of them
// are known. What it is told then and later leaves no gap.
func (h *Hub) join(ctx context.Context, c *client, items []like.Item) error {
	if len(items) > h.cfg.MaxItems {
		return fmt.Errorf("%w: more than %d items in one stream", like.ErrInvalid, h.cfg.MaxItems)
	}
	loads, err := h.seatAt(c, items)
	if err != nil {
		return err
	}
	return h.await(ctx, c, loads)
}

func (h *Hub) seatAt(c *client, items []like.Item) ([]*load, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, open := h.clients[c]; !open || h.draining {
		return nil, errEnded
	}
	var next *audience
	var loads []*load
	if len(items) > 0 {
		next, loads = h.audienceOf(items)
	}
	if next == c.audience {
		return loads, nil
	}
	// The new seat first, so that items of both audiences never stand empty.
	old, place := c.audience, c.place
	if next != nil {
		next.seat(c)
	}
	if old != nil {
		h.leave(old, place)
	}
	if next == nil {
		c.audience = nil
	}
	return loads, nil
}

// remove forgets a client. A second call does nothing.
func (h *Hub) remove(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, open := h.clients[c]; !open {
		return
	}
	delete(h.clients, c)
	h.count(c.viewer, -1)
	h.metrics.clients[c.over].Dec()
	if c.audience != nil {
		h.leave(c.audience, c.place)
		c.audience = nil
	}
	h.checkEmpty()
}

// checkEmpty tells Drain when the last client is gone.
func (h *Hub) checkEmpty() {
	if h.empty == nil || len(h.clients) > 0 {
		return
	}
	select {
	case <-h.empty:
	default:
		close(h.empty)
	}
}

// retry is the time after which one client comes back, drawn anew for each.
func (h *Hub) retry(more time.Duration) time.Duration {
	return h.cfg.Retry + time.Duration(rand.Int64N(int64(h.cfg.RetrySpread+more)+1))
}

// beats is the number of ticks between two heartbeats of a client.
func (h *Hub) beats() int { return max(1, int(h.cfg.Heartbeat/h.cfg.Interval)) }

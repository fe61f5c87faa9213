package pebble

import (
	"context"
	"sync"
	"time"

	"likewise/internal/like"
)

// calls counts the calls under way, so that Close can wait for them.
type calls struct {
	mu      sync.Mutex
	closed  bool
	active  sync.WaitGroup
	closing context.Context // done once Close was called; long reads watch it
	cancel  context.CancelCauseFunc
}

func (c *calls) init() {
	c.closing, c.cancel = context.WithCancelCause(context.Background())
}

// begin admits a call, which must call end when it returns.
func (c *calls) begin(ctx context.Context) (end func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, like.ErrClosed
	}
	c.active.Add(1)
	return c.active.Done, nil
}

// close admits no further call and waits for the ones under way.
func (c *calls) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(like.ErrClosed)
	c.active.Wait()
}

// interrupted reports why a long call must stop, if it must.
func (c *calls) interrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.closing.Err() != nil {
		return context.Cause(c.closing)
	}
	return nil
}

// rest waits, unless the call must stop.
func (c *calls) rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-c.closing.Done():
	}
	return c.interrupted(ctx)
}

// turn lets one call at a time through. It holds a token while nobody is inside.
type turn chan struct{}

func newTurn() turn {
	t := make(turn, 1)
	t <- struct{}{}
	return t
}

// take waits for the turn, which ends with release, unless the call must stop.
func (t turn) take(ctx context.Context, c *calls) (release func(), err error) {
	select {
	case <-t:
		return func() { t <- struct{}{} }, nil
	case <-ctx.Done():
	case <-c.closing.Done():
	}
	return nil, c.interrupted(ctx)
}

package reconcile

import (
	"context"
	"time"
)

// Pauses are long enough to be worth a timer, and short enough that an audit goes on
// soon after a step that took long.
const (
	leastPause = 5 * time.Millisecond
	mostPause  = time.Second
)

// pacer keeps work at a share of the time by pausing in between.
type pacer struct {
	share float64
	since time.Time     // when the work now under way began
	owed  time.Duration // pauses not taken yet
}

// resume begins to count work.
func (p *pacer) resume() { p.since = time.Now() }

// pause ends the work under way and waits as long as is owed for it. It returns
// the cause of a context that is done meanwhile.
func (p *pacer) pause(ctx context.Context) error {
	worked := time.Since(p.since)
	p.owed += time.Duration(float64(worked) * (1/p.share - 1))
	if p.owed < leastPause {
		return nil
	}
	timer := time.NewTimer(min(p.owed, mostPause))
	defer timer.Stop()
	p.owed = 0
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

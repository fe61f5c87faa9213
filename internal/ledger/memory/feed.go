package memory

import (
	"context"
	"fmt"
	"iter"
	"time"

	"likewise/internal/like"
)

// feed is one subscriber's backlog: the newest total of each item that changed
// since its consumer last took a batch.
type feed struct {
	wake chan struct{} // has one place; filled when something happened

	// Guarded by the ledger's mutex.
	newest     map[like.Item]like.Total
	overloaded bool
}

// Feed implements [ledger.Feeder].
func (l *Ledger) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		f, err := l.subscribe(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		defer l.unsubscribe(f)
		if !yield(nil, nil) {
			return
		}
		for {
			batch, err := l.next(ctx, f)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}

func (l *Ledger) subscribe(ctx context.Context) (*feed, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	f := &feed{wake: make(chan struct{}, 1), newest: map[like.Item]like.Total{}}
	l.feeds[f] = struct{}{}
	return f, nil
}

func (l *Ledger) unsubscribe(f *feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.feeds, f)
}

// next waits until the backlog of f is not empty and takes it.
func (l *Ledger) next(ctx context.Context, f *feed) ([]like.Total, error) {
	for {
		batch, due, err := l.take(ctx, f)
		if err != nil || len(batch) > 0 {
			return batch, err
		}
		if err := l.wait(ctx, f, due); err != nil {
			return nil, err
		}
	}
}

// take empties the backlog of f. The second result is when the next change falls
// due, zero when none is pending.
func (l *Ledger) take(ctx context.Context, f *feed) ([]like.Total, time.Time, error) {
	if err := l.lock(ctx); err != nil {
		return nil, time.Time{}, err
	}
	defer l.mu.Unlock()
	if f.overloaded {
		return nil, time.Time{}, fmt.Errorf("%w: the feed's consumer fell more than %d items behind",
			like.ErrOverloaded, l.cfg.Backlog)
	}
	batch := make([]like.Total, 0, len(f.newest))
	for _, t := range f.newest {
		batch = append(batch, t)
	}
	clear(f.newest)
	var due time.Time
	if len(l.store.pending) > 0 {
		due = l.store.pending[0].due
	}
	return batch, due, nil
}

// wait returns when f may have something to take: it was woken, a change fell
// due, or the feed is over.
func (l *Ledger) wait(ctx context.Context, f *feed, due time.Time) error {
	var fire <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		fire = timer.C
	}
	select {
	case <-f.wake:
	case <-fire:
	case <-l.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// publish hands moved totals to every feed. The mutex is held.
func (l *Ledger) publish(moved []like.Total) {
	if len(moved) == 0 {
		return
	}
	for f := range l.feeds {
		for _, t := range moved {
			f.newest[t.Item] = t
		}
		if len(f.newest) > l.cfg.Backlog {
			f.overloaded = true
			clear(f.newest)
		}
	}
	l.wakeFeeds()
}

// wakeFeeds lets every waiting feed look again. The mutex is held.
func (l *Ledger) wakeFeeds() {
	for f := range l.feeds {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

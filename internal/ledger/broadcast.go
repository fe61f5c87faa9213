package ledger

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"

	"likewise/internal/like"
)

// FeedBacklog is how many changed items one feed may hold back before its
// consumer is told that it fell behind (F3). Repeated changes of one item
// count once, because only the newest total is owed.
const FeedBacklog = 1 << 16

// Broadcast hands changed totals to any number of feeds. It is the part of
// [Feeder] that ledgers share. The zero value is ready; it starts no goroutine,
// and publishing never waits for a consumer.
type Broadcast struct {
	mu     sync.Mutex
	feeds  map[*feed]struct{}
	closed bool
}

// feed is one consumer's backlog, guarded by the broadcast's mutex.
type feed struct {
	pending map[like.Item]like.Total
	gap     error         // why changes are missing, when they are
	wake    chan struct{} // holds one token while there is something to see
}

// Publish offers committed totals to every feed. Of one item the largest version
// is kept. The slice stays the caller's.
func (b *Broadcast) Publish(totals []like.Total) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(totals) == 0 {
		return
	}
	for f := range b.feeds {
		f.add(totals)
		f.signal()
	}
}

func (f *feed) add(totals []like.Total) {
	for _, t := range totals {
		held, ok := f.pending[t.Item]
		if ok && held.Version >= t.Version {
			continue
		}
		if !ok {
			// A copy, because an item cut out of a request keeps the whole request.
			held.Item = like.Item{Collection: strings.Clone(t.Item.Collection), ID: strings.Clone(t.Item.ID)}
		}
		held.Count, held.Version = t.Count, t.Version
		f.pending[held.Item] = held
	}
	if len(f.pending) > FeedBacklog {
		f.lose("consumer is more than " + strconv.Itoa(FeedBacklog) + " items behind")
	}
}

// lose ends the feed with a gap; what it still owes does not matter any more.
func (f *feed) lose(why string) {
	f.gap = fmt.Errorf("%w: feed lost changes: %s", like.ErrOverloaded, why)
	clear(f.pending)
}

func (f *feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Feed implements [Feeder].
func (b *Broadcast) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		f := b.subscribe()
		defer b.unsubscribe(f)
		if !yield(nil, nil) {
			return
		}
		for {
			select {
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			case <-f.wake:
			}
			batch, err := b.take(f)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(batch) > 0 && !yield(batch, nil) {
				return
			}
		}
	}
}

// Gap ends every feed that is open with [like.ErrOverloaded]: the source of the
// totals may have missed changes, so consumers must read again what they hold
// (F3). Feeds that are opened later are not touched.
func (b *Broadcast) Gap() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for f := range b.feeds {
		f.lose("their source has a gap")
		f.signal()
	}
}

// Close ends every feed, and every later one, with [like.ErrClosed].
func (b *Broadcast) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for f := range b.feeds {
		f.signal()
	}
}

func (b *Broadcast) subscribe() *feed {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := &feed{pending: map[like.Item]like.Total{}, wake: make(chan struct{}, 1)}
	if b.feeds == nil {
		b.feeds = map[*feed]struct{}{}
	}
	b.feeds[f] = struct{}{}
	if b.closed {
		f.signal()
	}
	return f
}

func (b *Broadcast) unsubscribe(f *feed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.feeds, f)
}

// take empties a feed's backlog, or says why the feed ends.
func (b *Broadcast) take(f *feed) ([]like.Total, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case f.gap != nil:
		return nil, f.gap
	case b.closed:
		return nil, like.ErrClosed
	}
	batch := make([]like.Total, 0, len(f.pending))
	for _, t := range f.pending {
		batch = append(batch, t)
	}
	clear(f.pending)
	return batch, nil
}

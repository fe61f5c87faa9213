package counts

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeLedger is a ledger whose totals, states, failures and pace a test sets.
type fakeLedger struct {
	ledger.Reader // panics on what counts must not call

	mu     sync.Mutex
	totals map[like.Item]like.Total
	liked  map[like.Item]bool
	fail   error
	calls  [][]like.Item
	gate   chan struct{} // when set, each Totals call takes one token
}

func newFake(totals ...like.Total) *fakeLedger {
	f := &fakeLedger{totals: map[like.Item]like.Total{}, liked: map[like.Item]bool{}}
	f.set(totals...)
	return f
}

func (f *fakeLedger) set(totals ...like.Total) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range totals {
		f.totals[t.Item] = t
	}
}

func (f *fakeLedger) failWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

func (f *fakeLedger) loads() [][]like.Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Totals reads first and waits for the gate after, like a store whose answer is
// on its way while newer commands are accepted.
func (f *fakeLedger) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	f.mu.Lock()
	f.calls = append(f.calls, slices.Clone(items))
	totals, err := make([]like.Total, len(items)), f.fail
	for i, item := range items {
		totals[i] = f.totals[item]
		totals[i].Item = item
	}
	gate := f.gate
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	return totals, nil
}

func (f *fakeLedger) Liked(_ context.Context, _ like.User, items []like.Item) ([]like.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	states := make([]like.State, len(items))
	for i, item := range items {
		states[i].Liked = f.liked[item]
	}
	return states, f.fail
}

// fakeFeed yields what a test sends; an error ends the feed.
type fakeFeed struct {
	opened  chan struct{}
	batches chan []like.Total
	errs    chan error
}

func newFeed() *fakeFeed {
	return &fakeFeed{make(chan struct{}, 8), make(chan []like.Total), make(chan error)}
}

func (f *fakeFeed) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		if !yield(nil, nil) {
			return
		}
		f.opened <- struct{}{}
		for {
			select {
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			case err := <-f.errs:
				yield(nil, err)
				return
			case batch := <-f.batches:
				if !yield(batch, nil) {
					return
				}
			}
		}
	}
}

func post(id string) like.Item { return like.Item{Collection: "posts", ID: id} }

func total(id string, count int64, version uint64) like.Total {
	return like.Total{Item: post(id), Count: count, Version: version}
}

func mustPage(t *testing.T, c *Counts, viewer like.User, items ...like.Item) []Entry {
	t.Helper()
	page, err := c.Page(t.Context(), viewer, items)
	if err != nil {
		t.Fatalf("Page: %v", err)
	}
	return page
}

package hot

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(id int) like.Item { return like.Item{Collection: "posts", ID: strconv.Itoa(id)} }

func newItems() *Items { return New(slog.New(slog.DiscardHandler)) }

// Thirty seconds in which item i wins 100/i likes a second, among many that win one now and then.
func TestTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, counts, cold := newItems(), map[int]int64{}, 1000
		for second := range uint64(30) {
			var batch []like.Total
			for i := 1; i <= 10; i++ {
				counts[i] += int64(100 / i)
				batch = append(batch, like.Total{Item: post(i), Count: counts[i], Version: second + 1})
			}
			for range 1000 {
				cold++
				batch = append(batch, like.Total{Item: post(cold), Count: 1, Version: 1})
			}
			h.observe(batch, time.Now())
			time.Sleep(time.Second)
		}
		if len(h.entries) > capacity {
			t.Errorf("%d items are kept", len(h.entries))
		}
		top := h.Top(10)
		for i, item := range top {
			want := float64(100 / (i + 1))
			if item.Item != post(i+1) || item.Count != counts[i+1] || math.Abs(item.PerSecond-want) > want/5 {
				t.Errorf("place %d: %+v, want about %v a second", i+1, item, want)
			}
		}
		if len(top) != 10 {
			t.Errorf("%d items", len(top))
		}
		time.Sleep(5 * time.Minute)
		if top := h.Top(10); len(top) != 0 {
			t.Errorf("hot long after: %+v", top)
		}
	})
}

func TestUnlikesAreMovesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newItems()
		h.observe([]like.Total{{Item: post(1), Count: 1001, Version: 1}, {Item: post(2), Count: 11, Version: 1}}, time.Now())
		h.observe([]like.Total{{Item: post(1), Count: 1, Version: 2}, {Item: post(2), Count: 21, Version: 2}}, time.Now())
		top := h.Top(1)
		if len(top) != 1 || top[0].Item != post(1) || math.Abs(top[0].PerSecond-100.1) > 0.2 {
			t.Errorf("%+v", top)
		}
	})
}

// TestTotalsInAnyOrder doubles and delays totals, as a bus does that merges two feeds.
func TestTotalsInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newItems()
		for _, n := range []int64{100, 110, 120, 110, 130, 130, 120} {
			h.observe([]like.Total{{Item: post(1), Count: n, Version: uint64(n)}}, time.Now())
		}
		top := h.Top(1)
		if len(top) != 1 || top[0].Count != 130 || math.Abs(top[0].PerSecond-3.1) > 0.01 {
			t.Errorf("%#v, want 130 likes and 3.1 a second", top)
		}
	})
}

// feeds fails first, and then waits for the end.
type feeds struct {
	opened int
	last   error
}

func (f *feeds) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		f.opened++
		if !yield([]like.Total{{Item: post(f.opened), Count: 3, Version: 1}}, nil) {
			return
		}
		if f.opened == 1 {
			yield(nil, like.ErrOverloaded)
			return
		}
		if f.last == nil {
			<-ctx.Done()
			f.last = ctx.Err()
		}
		yield(nil, f.last)
	}
}

var _ ledger.Feeder = (*feeds)(nil)

func TestRun(t *testing.T) {
	for _, tt := range []struct{ last, want error }{{nil, nil}, {like.ErrClosed, like.ErrClosed}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			h, f := newItems(), &feeds{last: tt.last}
			if err := h.Run(ctx, f); !errors.Is(err, tt.want) || f.opened != 2 || len(h.entries) != 2 {
				t.Errorf("%v after %d feeds with %d items", err, f.opened, len(h.entries))
			}
		})
	}
}

func BenchmarkObserve(b *testing.B) {
	h := newItems()
	batch := make([]like.Total, 100)
	for n := int64(0); b.Loop(); n++ {
		for i := range batch {
			batch[i] = like.Total{Item: post(i), Count: n, Version: uint64(n) + 1}
		}
		h.observe(batch, time.Now())
	}
}

package counts

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/like"
)

// fakeShared is a shared cache that keeps what it is given, without versions: what
// is in it is the test's choice.
type fakeShared struct {
	mu     sync.Mutex
	totals map[like.Item]like.Total
	gets   [][]like.Item
	puts   []like.Total
}

func newShared(totals ...like.Total) *fakeShared {
	f := &fakeShared{totals: map[like.Item]like.Total{}}
	for _, t := range totals {
		f.totals[t.Item] = t
	}
	return f
}

func (f *fakeShared) Get(_ context.Context, items []like.Item) ([]like.Total, []bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gets = append(f.gets, slices.Clone(items))
	totals, known := make([]like.Total, len(items)), make([]bool, len(items))
	for i, item := range items {
		totals[i], known[i] = f.totals[item]
	}
	return totals, known
}

func (f *fakeShared) Put(totals []like.Total) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.puts = append(f.puts, totals...)
	for _, t := range totals {
		f.totals[t.Item] = t
	}
}

func TestSharedCacheIsAskedOnceBeforeTheLedger(t *testing.T) {
	f, s := newFake(total("1", 1, 1), total("2", 2, 2), total("3", 3, 3)), newShared(total("2", 2, 2), total("4", 0, 0))
	c := New(f, s, DefaultConfig(), nil)
	got := mustPage(t, c, "", post("1"), post("2"), post("3"), post("4"), post("1"))
	for i, want := range []int64{1, 2, 3, 0, 1} {
		if got[i].Total.Count != want || got[i].Age != 0 {
			t.Errorf("place %d: %+v, want %d", i, got[i], want)
		}
	}
	if len(s.gets) != 1 || len(s.gets[0]) != 4 {
		t.Errorf("shared cache was asked for %v, want four items at once", s.gets)
	}
	if loads := f.loads(); len(loads) != 1 || !slices.Equal(loads[0], []like.Item{post("1"), post("3")}) {
		t.Errorf("ledger was asked for %v, want what was missing", loads)
	}
	if !slices.Equal(s.puts, []like.Total{total("1", 1, 1), total("3", 3, 3)}) {
		t.Errorf("written back %v, want what the ledger answered", s.puts)
	}
	mustPage(t, c, "", post("1"), post("2"), post("3"), post("4"))
	if len(s.gets) != 1 || len(f.loads()) != 1 {
		t.Error("a page in the cache of this process was asked for behind it")
	}
}

func TestRefreshAsksTheSharedCacheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s, feed := newFake(), newShared(total("1", 5, 5)), newFeed()
		c := New(f, s, DefaultConfig(), nil)
		stop := run(t, c, feed, nil)
		defer stop()
		mustPage(t, c, "", post("1"))
		s.Put([]like.Total{total("1", 6, 6)})
		time.Sleep(c.cfg.RefreshAfter)
		mustPage(t, c, "", post("1"))
		synctest.Wait()
		if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 6 {
			t.Errorf("after refresh: %+v, want 6", got[0])
		}
		if n := len(f.loads()); n != 0 {
			t.Errorf("%d loads from the ledger, want none", n)
		}
	})
}

// TestOldSharedTotalIsAMiss: a shared total that is older than what this process
// knows lost an update. The ledger must be read, or the total would age for ever.
func TestOldSharedTotalIsAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFake(total("1", 6, 6)), newShared(total("1", 5, 5))
		c := New(f, s, DefaultConfig(), nil)
		c.Observe(total("1", 6, 6))
		time.Sleep(c.cfg.waitAfter())
		if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 6 || got[0].Age != 0 {
			t.Errorf("%+v, want 6 and fresh", got[0])
		}
		if len(f.loads()) != 1 || !slices.Equal(s.puts, []like.Total{total("1", 6, 6)}) {
			t.Errorf("loads %v and written back %v, want one and version 6", f.loads(), s.puts)
		}
	})
}

func TestSharedCacheServesWhileTheLedgerFails(t *testing.T) {
	f, s := newFake(), newShared(total("1", 5, 5))
	f.failWith(like.ErrUnavailable)
	c := New(f, s, DefaultConfig(), nil)
	if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 5 {
		t.Errorf("%+v, want 5", got[0])
	}
	if _, err := c.Page(t.Context(), "", []like.Item{post("1"), post("2")}); !errors.Is(err, like.ErrUnavailable) {
		t.Errorf("err = %v: an item that nothing has must fail", err)
	}
	if len(s.puts) != 0 {
		t.Errorf("a failure was written back: %v", s.puts)
	}
}

// TestFewLoadsAtOneTime: readers without any cache do not bury the ledger, those
// with an old total get it, and all others are told within a bounded time.
func TestFewLoadsAtOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.MaxLoads = 4
		f := newFake()
		c := New(f, nil, cfg, nil)
		held := post("held")
		mustPage(t, c, "", held)
		time.Sleep(cfg.waitAfter())
		f.gate = make(chan struct{})
		var busy sync.WaitGroup
		for i := range cfg.MaxLoads {
			busy.Go(func() { mustPage(t, c, "", post(strconv.Itoa(i))) })
		}
		synctest.Wait()

		var refused sync.WaitGroup
		for i := range 100 {
			refused.Go(func() {
				start := time.Now()
				_, err := c.Page(t.Context(), "", []like.Item{post("new" + strconv.Itoa(i))})
				if took := time.Since(start); !errors.Is(err, like.ErrOverloaded) || took > cfg.LoadTimeout/10 {
					t.Errorf("err = %v after %s, want ErrOverloaded soon", err, took)
				}
			})
		}
		refused.Go(func() {
			if got := mustPage(t, c, "", held); got[0].Age < cfg.waitAfter() {
				t.Errorf("%+v, want the old total with its age", got[0])
			}
		})
		refused.Wait()
		if n := len(f.loads()); n != 1+cfg.MaxLoads {
			t.Errorf("%d loads were begun, want %d", n, 1+cfg.MaxLoads)
		}
		close(f.gate)
		busy.Wait()
		if got := mustPage(t, c, "", held, post("new1")); got[0].Age != 0 {
			t.Errorf("afterwards %+v, want fresh", got)
		}
	})
}

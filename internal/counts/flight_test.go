package counts

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

func TestConcurrentMissesAreOneLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(total("1", 10, 1), total("2", 20, 2))
		f.gate = make(chan struct{})
		c := New(f, nil, DefaultConfig(), nil)
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() {
				if got := mustPage(t, c, "", post("1"), post("2")); got[0].Total.Count != 10 || got[1].Total.Count != 20 {
					t.Errorf("%+v", got)
				}
			})
		}
		synctest.Wait()
		close(f.gate)
		wg.Wait()
		if n := len(f.loads()); n != 1 {
			t.Errorf("%d loads, want 1", n)
		}
	})
}

func TestOverlappingPagesLoadEachItemOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(total("1", 1, 1), total("2", 2, 2), total("3", 3, 3))
		f.gate = make(chan struct{})
		c := New(f, nil, DefaultConfig(), nil)
		var wg sync.WaitGroup
		wg.Go(func() { mustPage(t, c, "", post("1"), post("2")) })
		synctest.Wait()
		wg.Go(func() {
			got := mustPage(t, c, "", post("3"), post("2"), post("3"))
			if got[0].Total.Count != 3 || got[1].Total.Count != 2 || got[2].Total.Count != 3 {
				t.Errorf("%+v", got)
			}
		})
		synctest.Wait()
		close(f.gate)
		wg.Wait()
		if loads := f.loads(); len(loads) != 2 || len(loads[1]) != 1 || loads[1][0] != post("3") {
			t.Errorf("loads %v, want the second to ask for 3 only", loads)
		}
	})
}

func TestWaiterOutlivesItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(total("1", 10, 1))
		f.gate = make(chan struct{}, 1)
		c := New(f, nil, DefaultConfig(), nil)
		gone := errors.New("client went away")
		leading, leave := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Page(leading, "", []like.Item{post("1")}); !errors.Is(err, gone) {
				t.Errorf("leader: %v, want its own cause", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 10 {
				t.Errorf("waiter: %+v", got[0])
			}
		})
		impatient, stop := context.WithCancelCause(t.Context())
		wg.Go(func() {
			if _, err := c.Page(impatient, "", []like.Item{post("1")}); !errors.Is(err, gone) {
				t.Errorf("impatient waiter: %v, want its own cause", err)
			}
		})
		synctest.Wait()
		stop(gone)
		synctest.Wait()
		leave(gone)
		synctest.Wait()
		f.gate <- struct{}{}
		wg.Wait()
		if n := len(f.loads()); n != 2 {
			t.Errorf("%d loads, want 2", n)
		}
	})
}

func TestPanickingLoadReleasesItsWaiters(t *testing.T) {
	c := New(panicLedger{}, nil, DefaultConfig(), nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = c.Page(t.Context(), "", []like.Item{post("1")})
	}()
	if len(c.flights.byItem) != 0 {
		t.Error("a flight is still listed")
	}
}

type panicLedger struct{ ledger.Reader }

func (panicLedger) Totals(context.Context, []like.Item) ([]like.Total, error) { panic("broken") }

package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

var item = like.Item{Collection: "posts", ID: "1"}

func apply(t *testing.T, l *memory.Ledger, op like.Op, user like.User) ledger.Ack {
	t.Helper()
	ack, err := l.Apply(t.Context(), like.Command{Item: item, User: user, Op: op})
	if err != nil {
		t.Fatal(err)
	}
	return ack
}

func total(t *testing.T, l *memory.Ledger) like.Total {
	t.Helper()
	totals, err := l.Totals(t.Context(), []like.Item{item})
	if err != nil {
		t.Fatal(err)
	}
	return totals[0]
}

// TestLag checks that facts move at once, the total later, and that an
// acknowledgement carries a version only when it is the total.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(memory.Config{Lag: time.Second})
		defer l.Close()
		if ack := apply(t, l, like.OpLike, "u"); ack.Count != 1 || ack.Version != 0 || !ack.State.Liked {
			t.Errorf("acknowledged with %+v while the total lags", ack)
		}
		time.Sleep(time.Second/2 - 1)
		if got := total(t, l); got.Count != 0 || got.Version != 0 {
			t.Errorf("%+v before half of the lag", got)
		}
		time.Sleep(time.Second/2 + 1)
		if got := total(t, l); got.Count != 1 || got.Version != 1 {
			t.Errorf("%+v after the lag", got)
		}
		if ack := apply(t, l, like.OpLike, "u"); ack.Count != 1 || ack.Version != 1 {
			t.Errorf("repeat acknowledged with %+v after the lag", ack)
		}
	})
}

// TestLagReorders checks that totals move in another order than commands came in,
// and pass through counts that no prefix of the commands has.
func TestLagReorders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memory.New(memory.Config{Lag: time.Second, Seed: 1})
		defer l.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var counts []int64
		live := make(chan struct{})
		over := make(chan struct{})
		go func() {
			defer close(over)
			for batch, err := range l.Feed(ctx) {
				if err != nil {
					return
				}
				if len(batch) == 0 {
					close(live)
				}
				for _, c := range batch {
					counts = append(counts, c.Count)
				}
			}
		}()
		<-live
		for range 10 { // never more than one like stands
			apply(t, l, like.OpLike, "u")
			apply(t, l, like.OpUnlike, "u")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		cancel()
		<-over
		most := int64(0)
		for _, c := range counts {
			most = max(most, c)
			if c < 0 {
				t.Errorf("the feed shows %d", c)
			}
		}
		if most < 2 {
			t.Errorf("the feed shows %v: nothing came in another order", counts)
		}
		if got := total(t, l); got.Count != 0 || got.Version != 20 {
			t.Errorf("settled at %+v", got)
		}
	})
}

package counts

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

// TestCountsConverge runs writers and readers over a real ledger, instant and
// lagging: no reader sees an item go back in version, a writer sees the own state
// at once, and in the end every count is the number of facts.
func TestCountsConverge(t *testing.T) {
	for name, lag := range map[string]time.Duration{"instant": 0, "lagging": time.Second} {
		for _, size := range []int{DefaultConfig().Items, 2} { // with and without evictions
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				synctest.Test(t, func(t *testing.T) { converge(t, lag, size, seed) })
			})
		}
	}
}

func converge(t *testing.T, lag time.Duration, size int, seed uint64) {
	l := memory.New(memory.Config{Lag: lag, Seed: seed})
	defer l.Close()
	cfg := DefaultConfig()
	cfg.Items = size
	c := New(l, nil, cfg, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var running, work sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx, l) })

	items := []like.Item{post("0"), post("1"), post("2"), post("3"), post("4")}
	for w := range uint64(4) {
		work.Go(func() { write(t, c, l, rand.New(rand.NewPCG(seed, w)), like.User(fmt.Sprint("u", w)), items) })
		work.Go(func() { read(t, c, size > 2, rand.New(rand.NewPCG(seed, 100+w)), items) })
	}
	work.Wait()
	time.Sleep(lag + 2*cfg.ExpireAfter)
	mustPage(t, c, "", items...)
	synctest.Wait()
	for i, e := range mustPage(t, c, "", items...) {
		page, err := l.Likers(t.Context(), items[i], like.Fact{}, 100)
		if err != nil || e.Total.Count != int64(len(page.Facts)) || e.Age != 0 {
			t.Errorf("%v: %+v, but %d facts (%v)", items[i], e, len(page.Facts), err)
		}
	}
	cancel()
	running.Wait()
}

// write likes and unlikes at random and reads its own state after each.
func write(t *testing.T, c *Counts, l *memory.Ledger, r *rand.Rand, user like.User, items []like.Item) {
	for range 300 {
		item, op := items[r.IntN(len(items))], like.Op(1+r.IntN(2))
		ack, err := l.Apply(t.Context(), like.Command{Item: item, User: user, Op: op})
		if err != nil {
			t.Error(err)
			return
		}
		c.Observe(like.Total{Item: item, Count: ack.Count, Version: ack.Version})
		e := mustPage(t, c, user, item)[0]
		if e.Liked != (op == like.OpLike) || e.Liked && e.Total.Count < 1 {
			t.Errorf("%s after %v of %v: %+v", user, op, item, e)
		}
		time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
	}
}

// read checks that what is shown never goes back, as long as nothing is evicted.
func read(t *testing.T, c *Counts, steady bool, r *rand.Rand, items []like.Item) {
	var last [5]uint64
	for range 300 {
		for i, e := range mustPage(t, c, "", items...) {
			if steady && e.Total.Version < last[i] || e.Total.Count < 0 {
				t.Errorf("%v went back from version %d to %+v", items[i], last[i], e.Total)
			}
			last[i] = e.Total.Version
		}
		time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
	}
}

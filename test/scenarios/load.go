package scenarios

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"likewise/test/harness"
)

// pairUse tells a worker whether it had a pair for itself.
type pairUse struct {
	active, begun atomic.Int64
}

// busyWorkers is B11: parallel writes of one account wait for each other, they
// do not fail, and everybody sees their own state at once.
func busyWorkers(w *world) {
	const users, posts, workers = 500, 5, 50
	var pairs [users * posts]pairUse
	ctx, cancel := context.WithTimeout(w.ctx, size(w, 2*time.Second, time.Minute))
	defer cancel()
	var checked atomic.Int64
	w.together(workers, func(int) error {
		for ctx.Err() == nil {
			k := rand.IntN(len(pairs))
			user, post := w.user(k%users+1), w.post(k/users+1)
			if _, err := w.client.Counts(w.ctx, user, post); err != nil {
				return err
			}
			alone := pairs[k].active.Add(1) == 1
			begun, like := pairs[k].begun.Add(1), rand.IntN(2) == 0
			if err := w.set(user, post, like); err != nil {
				return err
			}
			counts, err := w.client.Counts(w.ctx, user, post)
			alone = alone && pairs[k].begun.Load() == begun
			pairs[k].active.Add(-1)
			if err != nil {
				return err
			}
			if alone && counts[0].Mine() != like {
				return fmt.Errorf("%s on %v reads liked %v after an acknowledged %v", user, post, counts[0].Mine(), like)
			}
			if alone {
				checked.Add(1)
			}
		}
		return nil
	})
	if checked.Load() == 0 {
		w.Fatal("no read was alone with its pair")
	}
}

// stopUnderLoad is B17: a graceful stop in the middle of load neither loses nor
// doubles, also when the signal comes twice.
func stopUnderLoad(w *world) {
	w.needNodes()
	fresh := 0
	for round := range size(w, 3, 30) {
		w.Logf("round %d from user %d", round, fresh)
		fresh += w.loadUntilStopped(fresh, time.Duration(rand.IntN(int(size(w, 300*time.Millisecond, time.Second)))), round%3 == 1)
		w.acks.Died()
		w.start()
	}
	w.settled()
}

// loadUntilStopped sends 500 likes a second by new users on 20 posts, asks all
// nodes to stop after a while, and returns how many users that took.
func (w *world) loadUntilStopped(from int, after time.Duration, twice bool) int {
	w.Helper()
	jobs := make(chan int)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for k := range jobs { // no answer is as good as any here; 5xx are counted
				_ = w.set(w.user(from+k), w.post(rand.IntN(20)+1), true)
			}
		})
	}
	signal := time.NewTimer(after)
	defer signal.Stop()
	stopped := make(chan struct{})
	sent := w.paced(500, func(k int) bool {
		select {
		case <-signal.C:
			wg.Go(func() { w.stopAll(twice); close(stopped) })
		default:
		}
		select {
		case <-stopped:
			return false
		case jobs <- k:
			return true
		}
	})
	close(jobs)
	wg.Wait()
	for _, n := range w.target.Nodes {
		n.WaitStopped()
	}
	return sent
}

func (w *world) stopAll(twice bool) {
	for _, n := range w.target.Nodes {
		n.Signal(syscall.SIGTERM)
	}
	if twice {
		<-time.After(100 * time.Millisecond)
	}
	for _, n := range w.target.Nodes {
		if twice {
			n.Signal(syscall.SIGTERM)
		}
		select {
		case <-n.Done():
		case <-time.After(20 * time.Second): // WaitStopped then fails the test
		}
	}
}

// paced calls f(1), f(2) and so on at a rate per second until it returns false,
// and returns the number of the last call.
func (w *world) paced(rate int, f func(k int) bool) int {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for k := 1; ; k++ {
		if !f(k) {
			return k
		}
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			return k
		}
	}
}

// likeMany likes pairs as a trusted backend would.
func (w *world) likeMany(pairs []harness.Pair) error {
	for chunk := range slices.Chunk(pairs, harness.MaxBatch) {
		var batch []harness.Command
		var done []func(bool)
		for _, p := range chunk {
			batch = append(batch, harness.Command{Item: p.Item, User: p.User, Op: "like"})
			done = append(done, w.acks.Begin(p.User, p.Item, true))
		}
		if err := w.client.Batch(w.ctx, batch); err != nil {
			return err
		}
		for _, ok := range done {
			ok(true)
		}
	}
	return nil
}

// fill makes users from+1 to from+n like an item.
func (w *world) fill(item harness.Item, from, n int) {
	w.Helper()
	pairs := make([]harness.Pair, n)
	for k := range pairs {
		pairs[k] = harness.Pair{User: w.user(from + k + 1), Item: item}
	}
	w.must(w.likeMany(pairs))
}

// recountUnderLoad is B19: while everything is audited, likes go on, and what is
// under way is not taken for drift.
func recountUnderLoad(w *world) {
	w.needAdmin()
	hot, deep, wide := w.post(0), size(w, 2000, 200_000), size(w, 100, 10_000)
	w.fill(hot, 0, deep)
	var pairs []harness.Pair
	for u := 1; u <= 5; u++ {
		for _, p := range w.posts(wide) {
			pairs = append(pairs, harness.Pair{User: w.user(u), Item: p})
		}
	}
	w.must(w.likeMany(pairs))
	next := deep
	likeFor := func(d time.Duration) (took []time.Duration) {
		w.paced(200, func(k int) bool {
			next++
			begin := time.Now()
			p := hot
			if k%2 == 0 {
				p = w.post(rand.IntN(wide) + 1)
			}
			w.like(w.user(next), p)
			took = append(took, time.Since(begin))
			d -= time.Second / 200
			return d > 0
		})
		return took
	}
	auditing := func() time.Duration {
		ctx, cancel := context.WithCancel(w.ctx)
		audits := make(chan error, 1)
		go func() {
			var err error
			for err == nil && ctx.Err() == nil {
				err = w.client.Reconcile(w.ctx)
			}
			audits <- err
		}()
		during := likeFor(size(w, 500*time.Millisecond, 10*time.Second))
		cancel()
		w.must(<-audits)
		return p99(during)
	}
	usual := func() time.Duration { return p99(likeFor(size(w, 200*time.Millisecond, 5*time.Second))) }
	w.wantClose("an audit", auditing, usual, func(with, without time.Duration) bool {
		// The last limit is for a machine that is calm without it.
		return with <= max(2*without, 50*time.Millisecond) && with <= max(without*3/2, 250*time.Millisecond)
	})
}

// wantClose wants that the p99 of a like is close with something beside it and
// without. Others use the machine too, so under full size it tries more than once,
// and otherwise it only plays both.
func (w *world) wantClose(what string, with, without func() time.Duration, isClose func(with, without time.Duration) bool) {
	w.Helper()
	for range 8 {
		usual, beside := without(), with()
		if w.small || isClose(beside, usual) {
			return
		}
		w.Logf("p99 of a like is %v with %s, %v without", beside, what, usual)
	}
	w.Fatalf("%s slows likes down", what)
}

func p99(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)*99/100]
}

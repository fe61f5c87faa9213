package conformance

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"likewise/internal/like"
)

// watch consumes a feed in a goroutine and remembers what it showed.
type watch struct {
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when the feed has ended

	mu     sync.Mutex
	newest map[like.Item]like.Total
	seen   []like.Total // all, in order
	err    error        // the last element's
}

// watch starts a feed and returns when it is live. The caller ends it with stop.
func (r *run) watch() *watch {
	r.Helper()
	ctx, cancel := context.WithCancelCause(r.Context())
	w := &watch{cancel: cancel, over: make(chan struct{}), newest: map[like.Item]like.Total{}}
	live := make(chan int, 1)
	go func() {
		defer close(w.over)
		first := true
		for batch, err := range r.ledger.Feed(ctx) {
			if first {
				live <- len(batch)
				first = false
			}
			w.take(batch, err)
		}
	}()
	select {
	case n := <-live:
		if n != 0 {
			r.Errorf("the first batch of a feed has %d totals, want none", n)
		}
	case <-w.over:
		r.Fatalf("the feed ended before it was live")
	case <-time.After(r.patience):
		r.Fatalf("the feed did not become live")
	}
	return w
}

func (w *watch) take(batch []like.Total, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	for _, t := range batch {
		w.seen = append(w.seen, t)
		if t.Version >= w.newest[t.Item].Version {
			w.newest[t.Item] = t
		}
	}
}

// stop ends the feed and returns everything that it showed.
func (w *watch) stop() []like.Total {
	w.cancel(errCause)
	<-w.over
	return w.seen
}

// shows waits until the newest total that the feed showed is the wanted one, or a later
// one of the same count: a total may move once more, by as much up as down.
func (w *watch) shows(r *run, want like.Total) {
	r.Helper()
	var got like.Total
	reached := r.eventually(func() bool {
		w.mu.Lock()
		got = w.newest[want.Item]
		w.mu.Unlock()
		if got.Version > want.Version {
			if now := r.total(want.Item); now.Count == want.Count {
				want = now
			}
		}
		return got == want
	})
	if !reached {
		r.Fatalf("the feed shows %+v, Totals %+v", got, want)
	}
}

// checkF1: the first batch is empty, and every change acknowledged after it is
// yielded: in the end the feed has shown the newest total of every item.
func checkF1(r *run) {
	r.like("before", postN(0))
	w := r.watch()
	defer w.stop()
	for n := range 3 { // one change at a time, so that no later one covers for it
		r.like(userN(n), post("single"))
		w.shows(r, r.settled(post("single"), int64(n+1)))
	}
	r.together(8, func(u int) {
		for n := range 60 {
			r.try(like.Command{Item: postN(n % 20), User: userN(u), Op: like.OpLike})
			if n%4 == 0 {
				r.try(like.Command{Item: postN(n % 20), User: userN(u), Op: like.OpUnlike})
			}
		}
	})
	r.settle()
	for n := range 20 {
		w.shows(r, r.totalIs(postN(n), int64(len(r.likers(postN(n), 50)))))
	}
	if _, err := r.ledger.EraseUser(r.Context(), "u1"); err != nil {
		r.Errorf("EraseUser: %v", err)
	}
	w.shows(r, r.settled(post("single"), 2))
	if _, err := r.ledger.RemoveItem(r.Context(), post("single")); err != nil {
		r.Errorf("RemoveItem: %v", err)
	}
	w.shows(r, r.settled(post("single"), 0))
	if r.h.Injure != nil && r.h.Injure(r.tb, r.ledger, Injury{Fact: like.Fact{Item: post("single")}, Skew: 3}) {
		r.audit(post("single"), true)
		w.shows(r, r.settled(post("single"), 0))
	}
}

// checkF2: only committed totals are yielded: what a feed showed, Totals shows or
// has passed, also after a crash.
func checkF2(r *run) {
	w := r.watch()
	v := versions{}
	r.like("u", post("quiet"))
	w.shows(r, r.settled(post("quiet"), 1))
	l := r.ledger
	var wg sync.WaitGroup
	for u := range 8 {
		wg.Go(func() {
			for n := range 5000 {
				_, err := l.Apply(r.Context(), like.Command{Item: postN(n % 5), User: userN(u*10_000 + n), Op: like.OpLike})
				if err != nil {
					return
				}
			}
		})
	}
	r.eventually(func() bool { // until the feed is well under way
		w.mu.Lock()
		seen := w.seen
		w.mu.Unlock()
		if len(seen) > 0 {
			r.passed(v, "before", seen[len(seen)-1])
		}
		return len(seen) >= 50
	})
	r.reopen()
	wg.Wait()
	for _, t := range w.stop() {
		r.passed(v, "after", t)
	}
}

// passed demands that Totals is at least as new as a total that the feed showed.
func (r *run) passed(v versions, when string, shown like.Total) {
	r.Helper()
	v.saw(r, "Feed", shown)
	now := r.total(shown.Item)
	v.saw(r, "Totals", now)
	if now.Version < shown.Version {
		r.Fatalf("Totals is %+v %s a crash, the feed had shown %+v", now, when, shown)
	}
}

// checkF3: a consumer that does not read never holds up writers; it gets every
// newest total in the end, or like.ErrOverloaded as the last element.
func checkF3(r *run) {
	changed := max(r.h.Backlog, 2000)
	var last error
	got := map[like.Item]int64{}
	stalled := false
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	late := time.AfterFunc(r.patience, func() { cancel(errCause) })
	defer late.Stop()
	for batch, err := range r.ledger.Feed(ctx) {
		if last = err; err != nil {
			break
		}
		if !stalled {
			stalled = true // the loop does not come back before everything is written
			late.Stop()    // however long that takes
			cmds := make([]like.Command, changed)
			for k := range cmds {
				cmds[k] = like.Command{Item: postN(k), User: "u", Op: like.OpLike}
			}
			r.applyAll(cmds)
			r.settled(postN(changed-1), 1)
			r.settle() // the feed may be told a little later
			late.Reset(r.patience)
		}
		for _, t := range batch {
			got[t.Item] = t.Count
		}
		if len(got) == changed {
			break
		}
	}
	switch {
	case errors.Is(last, like.ErrOverloaded):
		w := r.watch() // the way on
		r.like("u2", postN(0))
		w.shows(r, r.settled(postN(0), 2))
		w.stop()
	case r.h.Backlog > 0:
		r.Errorf("a feed that is %d items behind goes on (%v), want ErrOverloaded", changed, last)
	case last != nil || len(got) != changed:
		r.Errorf("a stalled feed showed %d of %d items and then %v", len(got), changed, last)
	}
}

// checkF4: after the context is done its cause is the last element, after Close
// like.ErrClosed; leaving the loop releases everything.
func checkF4(r *run) {
	w := r.watch()
	r.like("u", post("1"))
	w.stop()
	if !errors.Is(w.err, errCause) {
		r.Errorf("last element of a feed whose context is done: %v, want its cause", w.err)
	}
	gone, cancel := context.WithCancelCause(r.Context())
	cancel(errCause)
	if err := feedCall.do(gone, r.ledger); !errors.Is(err, errCause) {
		r.Errorf("feed with a done context: %v, want its cause", err)
	}
	const left = 500 // more than other tests may start meanwhile
	before := runtime.NumGoroutine()
	for range left {
		for range r.ledger.Feed(r.Context()) {
			break
		}
	}
	if !r.eventually(func() bool { return runtime.NumGoroutine() < before+left/2 }) {
		r.Errorf("%d feeds that were left keep goroutines: %d, before %d", left, runtime.NumGoroutine(), before)
	}
	w = r.watch()
	defer w.stop()
	if err := r.ledger.Close(); err != nil {
		r.Errorf("Close: %v", err)
	}
	select {
	case <-w.over:
	case <-time.After(r.patience):
		r.Fatalf("Close does not end a feed")
	}
	if !errors.Is(w.err, like.ErrClosed) {
		r.Errorf("last element of a feed whose ledger is closed: %v, want ErrClosed", w.err)
	}
}

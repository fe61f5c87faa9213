package scenarios

import (
	"fmt"
	"time"

	"likewise/test/harness"
)

// repeats is B01: count changes of state, not requests.
func repeats(w *world) {
	u1, u2, p := w.user(1), w.user(2), w.post(1)
	for range 25 {
		w.like(u1, p)
		w.unlike(u2, p)
	}
	w.wantCount(p, 1)
	w.wantLikers(p, u1)
	w.wantMine(u2, p, false)
	for range 10 {
		w.unlike(u1, p)
	}
	w.wantCount(p, 0)
	w.wantLikers(p)
}

// firstLikes is B02: the first use of an item must not be check-then-insert.
func firstLikes(w *world) {
	for _, p := range w.posts(20) {
		w.together(50, func(k int) error { return w.set(w.user(k), p, true) })
	}
	for _, p := range w.posts(20) {
		w.wantCount(p, 50)
		if n := len(w.likers(p, 100)); n != 50 {
			w.Fatalf("%v has %d likers, want 50", p, n)
		}
	}
}

// parallelUnlikes is B03: of parallel removals only one finds something.
func parallelUnlikes(w *world) {
	p := w.post(1)
	for k := range 10 {
		w.like(w.user(k+1), p)
	}
	w.wantCount(p, 10)
	for range size(w, 10, 50) {
		w.together(20, func(int) error {
			state, err := harness.Recorder{Client: w.client, Acks: w.acks}.Set(w.ctx, w.user(1), p, false)
			if err == nil && state.Count != 9 {
				err = fmt.Errorf("an unlike answered count %d, want 9", state.Count)
			}
			return err
		})
		w.wantCount(p, 9)
		w.like(w.user(1), p)
		w.wantCount(p, 10)
	}
}

// unlikeElsewhere is B04: every way that removes a like goes through one gate.
func unlikeElsewhere(w *world) {
	u, p := w.user(1), w.post(20)
	w.like(u, p)
	w.restart()
	w.wantMine(u, p, true)
	w.unlike(u, p)
	gone := func() {
		w.wantCount(p, 0)
		w.wantMine(u, p, false)
		w.wantLikers(p)
		if last := w.counts(u, w.posts(20)...)[19]; last.Count != 0 || last.Mine() {
			w.Fatalf("as item 20 of a page: %+v, want 0 and false", last)
		}
	}
	gone()
	w.restart()
	gone()
}

// nobodyLost is B05: likes and unlikes at one instant leave exactly the right list.
func nobodyLost(w *world) {
	p := w.post(1)
	w.together(200, func(k int) error { return w.set(w.user(k), p, true) })
	w.together(200, func(k int) error { return w.set(w.user(k), p, k > 100) })
	w.wantCount(p, 100)
	var want []string
	for k := 101; k <= 200; k++ {
		want = append(want, w.user(k))
	}
	w.wantLikers(p, want...)
	if n := len(w.likers(p, 7)); n != 100 {
		w.Fatalf("a walk by 7 finds %d likers, want 100", n)
	}
	for k := 1; k <= 200; k++ {
		w.wantMine(w.user(k), p, k > 100)
	}
}

// oneNumber is B06: every view has one definition of the number.
func oneNumber(w *world) {
	page, liker, other := w.posts(20), w.user(30), w.user(31)
	for _, k := range []int{0, 9, 19} { // the positions at which it is read
		for u := 1; u <= 30; u++ {
			w.like(w.user(u), page[k])
		}
		for u := 1; u <= 5; u++ {
			w.unlike(w.user(u), page[k])
		}
		for u := 1; u <= 3; u++ {
			w.like(w.user(u), page[k])
		}
		w.wantCount(page[k], 28)
	}
	tick := time.NewTicker(size(w, 20*time.Millisecond, 500*time.Millisecond))
	defer tick.Stop()
	for range 10 {
		<-tick.C
		for _, as := range []string{liker, other, ""} {
			counts := w.counts(as, page...)
			for _, k := range []int{0, 9, 19} {
				state, err := w.client.State(w.ctx, as, page[k])
				w.must(err)
				one := w.counts(as, page[k])[0]
				want := as == liker
				if one.Count != 28 || counts[k].Count != 28 || state.Count != 28 {
					w.Fatalf("%v as %q: alone %d, in a page %d, its state %d, want 28", page[k], as, one.Count, counts[k].Count, state.Count)
				}
				if one.Mine() != want || counts[k].Mine() != want || state.Liked != want {
					w.Fatalf("%v as %q: liked alone %v, in a page %v, its state %v", page[k], as, one.Mine(), counts[k].Mine(), state.Liked)
				}
			}
		}
		if n := len(w.likers(page[9], 10)); n != 28 {
			w.Fatalf("the liker list has %d, want 28", n)
		}
		if n := w.firstMessage(page[9]); n != 28 {
			w.Fatalf("a stream begins with %d, want 28", n)
		}
	}
}

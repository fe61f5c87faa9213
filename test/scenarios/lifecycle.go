package scenarios

import (
	"likewise/test/harness"
)

// eraseUser is B07: erasing emits one removal for each like really removed.
func eraseUser(w *world) {
	w.needAdmin()
	gone := w.user(1)
	for u := 1; u <= 5; u++ {
		for _, p := range w.posts(3) {
			w.like(w.user(u), p)
		}
	}
	check := func() {
		for _, p := range w.posts(3) {
			w.wantCount(p, 4)
			w.wantLikers(p, w.user(2), w.user(3), w.user(4), w.user(5))
		}
		liked, err := w.client.WalkLiked(w.ctx, gone)
		w.must(err)
		if len(liked) != 0 {
			w.Fatalf("the erased user still likes %v", liked)
		}
	}
	for range 2 {
		w.must(w.client.Erase(w.ctx, gone))
		w.acks.Erased(func(p harness.Pair) bool { return p.User == gone })
		check()
	}
	w.restart()
	w.must(w.client.Reconcile(w.ctx))
	check()
}

// removePost is B08: a removed post is not liked by anybody any more.
func removePost(w *world) {
	w.needAdmin()
	p1, p2 := w.post(1), w.post(2)
	for u := 1; u <= 3; u++ {
		w.like(w.user(u), p1)
		w.like(w.user(u), p2)
	}
	w.must(w.client.Remove(w.ctx, p1))
	w.acks.Erased(func(p harness.Pair) bool { return p.Item == p1 })
	check := func() {
		w.wantCount(p1, 0)
		w.wantCount(p2, 3)
		if both := w.counts(w.user(1), p1, p2); both[0].Count != 0 || both[0].Mine() || both[1].Count != 3 || !both[1].Mine() {
			w.Fatalf("counts are %+v, want 0 and 3", both)
		}
		w.wantLikers(p1)
		liked, err := w.client.WalkLiked(w.ctx, w.user(1))
		w.must(err)
		if len(liked) != 1 || liked[0].Item != p2 {
			w.Fatalf("own likes are %v, want only %v", liked, p2)
		}
	}
	check()
	w.must(w.client.Reconcile(w.ctx))
	check()
	w.restart()
	check()
}

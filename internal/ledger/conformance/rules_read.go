package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// checkR1: Liked is in request order, repeats allowed, and sees every acknowledged
// command of the user at once.
func checkR1(r *run) {
	a, b, c := post("a"), post("b"), post("c")
	sa, sb := r.like("u", a).State, r.like("u", b).State
	r.like("other", c)
	r.liked("u", []like.Item{b, c, a, b, a}, []like.State{sb, {}, sa, sb, sa})
	r.liked("nobody", []like.Item{b, c}, []like.State{{}, {}})
	r.liked("u", nil, nil)
	r.together(16, func(w int) {
		user := userN(w)
		for n := range 40 {
			cmd := like.Command{Item: postN(n % 3), User: user, Op: like.OpLike}
			if n%4 >= 2 {
				cmd.Op = like.OpUnlike
			}
			ack, ok := r.try(cmd)
			if !ok {
				return
			}
			states, err := r.ledger.Liked(r.Context(), user, []like.Item{cmd.Item})
			if err != nil || states[0] != ack.State {
				r.Errorf("%q reads %+v, %v right after the acknowledgement of %+v", user, states, err, ack.State)
			}
		}
	})
}

func (r *run) liked(user like.User, items []like.Item, want []like.State) {
	r.Helper()
	got, err := r.ledger.Liked(r.Context(), user, items)
	if err != nil || !slices.Equal(got, want) {
		r.Errorf("Liked(%q, %v) = %+v, %v, want %+v", user, items, got, err, want)
	}
}

// checkR2: Totals are in request order, repeats allowed; unknown is 0 with version
// 0; never negative.
func checkR2(r *run) {
	a, b, c, unknown := post("a"), post("b"), post("c"), post("unknown")
	r.likeAll(usersN(0, 3), c)
	r.likeAll(usersN(0, 2), b)
	r.likeAll(usersN(0, 1), a)
	r.settled(c, 3)
	r.totalIs(b, 2)
	r.totalIs(a, 1)
	asked := []like.Item{c, unknown, a, b, c}
	got, err := r.ledger.Totals(r.Context(), asked)
	if err != nil || len(got) != len(asked) {
		r.Fatalf("Totals(%v) = %+v, %v", asked, got, err)
	}
	for k, want := range []int64{3, 0, 1, 2, 3} {
		if got[k].Item != asked[k] || got[k].Count != want || (want == 0) != (got[k].Version == 0) {
			r.Errorf("Totals(%v)[%d] = %+v, want count %d", asked, k, got[k], want)
		}
	}
	if got, err := r.ledger.Totals(r.Context(), nil); err != nil || len(got) != 0 {
		r.Errorf("Totals of nothing: %+v, %v", got, err)
	}
	r.whileReading(func() {
		if got, err := r.ledger.Totals(r.Context(), []like.Item{a}); err != nil || got[0].Count < 0 {
			r.Errorf("Totals under load: %+v, %v", got, err)
		}
	}, func() {
		r.together(8, func(w int) { // most of the time there is one like or none
			for range 60 {
				r.try(like.Command{Item: a, User: userN(w), Op: like.OpLike})
				r.try(like.Command{Item: a, User: userN(w), Op: like.OpUnlike})
			}
		})
	})
	r.settled(a, 0)
}

// whileReading repeats read from another goroutine until work is done.
func (r *run) whileReading(read, work func()) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			read()
		}
	})
	defer wg.Wait()
	defer stop.Store(true)
	work()
}

// checkR3: totals end as the number of facts; a version never belongs to two
// counts, and a later read never returns a smaller version.
func checkR3(r *run) {
	items := []like.Item{post("a"), post("b")}
	users := usersN(0, 12)
	v := versions{}
	last := map[like.Item]uint64{}
	look := func() {
		totals, err := r.ledger.Totals(r.Context(), items)
		if err != nil {
			r.Errorf("Totals: %v", err)
			return
		}
		for _, t := range totals {
			if t.Version < last[t.Item] {
				r.Errorf("Totals: version of %v went from %d back to %d", t.Item, last[t.Item], t.Version)
			}
			last[t.Item] = t.Version
			v.saw(r, "Totals", t)
		}
	}
	for round := range 3 {
		r.whileReading(look, func() {
			r.together(len(users), func(w int) {
				rng := rand.New(rand.NewPCG(uint64(w), uint64(round)))
				for range 40 {
					op := like.OpLike
					if rng.IntN(2) == 0 {
						op = like.OpUnlike
					}
					r.try(like.Command{Item: items[rng.IntN(2)], User: users[w], Op: op})
				}
			})
			r.settle()
		})
		r.agree(users, items)
		look()
	}
	for range 20 { // an unlike may reach the total before its like does
		r.like("u", items[0])
		look()
		r.unlike("u", items[0])
		look()
	}
	if _, err := r.ledger.RemoveItem(r.Context(), items[0]); err != nil {
		r.Errorf("RemoveItem: %v", err)
	}
	r.settled(items[0], 0)
	look()
}

// checkR4: lists are newest first, in a fixed order within one Since; a walk finds
// everyone who likes the item throughout, nobody twice and nobody skipped.
func checkR4(r *run) {
	even := post("even")
	var cmds []like.Command
	for n, user := range usersN(0, 23) { // groups of equal stamps, wider and narrower than pages
		cmds = append(cmds, like.Command{Item: even, User: user, Op: like.OpLike, At: like.Stamp(1 + n*n/60)})
	}
	r.applyAll(cmds)
	first := r.likers(even, 1)
	if len(first) != len(cmds) {
		r.Fatalf("a walk of single facts finds %d of %d", len(first), len(cmds))
	}
	for n := 2; n <= len(cmds)+1; n++ {
		if diff := cmp.Diff(first, r.likers(even, n)); diff != "" {
			r.Fatalf("pages of %d are another list than pages of 1 (-1 +%d):\n%s", n, n, diff)
		}
	}
	if got := r.likers(post("unknown"), 5); len(got) != 0 {
		r.Errorf("likers of an unknown item: %v", got)
	}
	r.walkUnderChurn(
		func(n int) like.Command { return like.Command{Item: post("churn"), User: userN(n)} },
		func(n int) []like.Fact { return r.likers(post("churn"), n) },
		func(f like.Fact) any { return f.User },
	)
}

// walkUnderChurn walks a list in small pages while others come and go. cmd names
// the n-th pair of the list. An import comes only once, because one that returned
// with an older stamp would rightly be met again.
func (r *run) walkUnderChurn(cmd func(n int) like.Command, walk func(n int) []like.Fact, id func(like.Fact) any) {
	r.Helper()
	const stays = 40
	op := func(n int, op like.Op, at like.Stamp) like.Command {
		c := cmd(n)
		c.Op, c.At = op, at
		return c
	}
	var cmds []like.Command
	for n := range 2 * stays { // every second one will come and go
		at := like.Stamp(0)
		if n%4 < 2 {
			at = like.Stamp(1000 + n/8)
		}
		cmds = append(cmds, op(n, like.OpLike, at))
	}
	r.applyAll(cmds)
	var imports atomic.Int64
	step := func(rng *rand.Rand, number int) {
		goes := 2*rng.IntN(stays) + 1
		r.try(op(goes, like.OpUnlike, 0))
		r.try(op(goes, like.OpLike, 0))
		if number%4 == 0 && imports.Add(-1) >= 0 {
			r.try(op(number, like.OpLike, like.Stamp(990+rng.IntN(40))))
		}
	}
	rounds := 8
	if r.h.Brief {
		rounds = 4
	}
	r.whileChurning(step, func() {
		for round := range rounds {
			imports.Store(20) // a list that grows while it is walked takes longer and longer
			found := map[any]bool{}
			for _, f := range walk(round%4 + 1) {
				found[id(f)] = true
			}
			for n := range stays {
				c := cmd(2 * n)
				if !found[id(like.Fact{Item: c.Item, User: c.User})] {
					r.Fatalf("a walk in pages of %d skipped %v by %q, who stayed throughout", round%4+1, c.Item, c.User)
				}
			}
		}
	})
}

// whileChurning repeats step from three goroutines until work is done, and between
// the pages of work's walks, because goroutines may get no turn there. Every call
// has another number.
func (r *run) whileChurning(step func(rng *rand.Rand, number int), work func()) {
	var churn sync.WaitGroup
	stop := make(chan struct{})
	for w := range 3 {
		churn.Go(func() {
			rng := rand.New(rand.NewPCG(4, uint64(w)))
			for number := 1000 * (w + 1); ; number++ {
				select {
				case <-stop:
					return
				default:
					step(rng, number)
				}
			}
		})
	}
	defer churn.Wait()
	defer close(stop)
	rng, number := rand.New(rand.NewPCG(4, 3)), 1_000_000
	r.between = func() {
		step(rng, number)
		number++
	}
	defer func() { r.between = nil }()
	work()
}

// checkR5: the fact at the position need not exist any more.
func checkR5(r *run) {
	item := post("1")
	r.positions(func(n int) like.Command { return like.Command{Item: item, User: userN(n)} },
		func(after like.Fact, n int) (ledger.Page, error) {
			return r.ledger.Likers(r.Context(), item, after, n)
		})
}

// positions checks pages behind facts that were removed, that came again, and that
// never existed.
func (r *run) positions(cmd func(n int) like.Command, read func(like.Fact, int) (ledger.Page, error)) {
	r.Helper()
	do := func(n int, op like.Op, at like.Stamp) {
		c := cmd(n)
		c.Op, c.At = op, at
		r.apply(c)
	}
	page := func(after like.Fact, n int) []like.Fact {
		p, err := read(after, n)
		if err != nil {
			r.Fatalf("page behind %+v: %v", after, err)
		}
		return p.Facts
	}
	for n := range 30 {
		do(n, like.OpLike, like.Stamp(100+n/3)) // ties on both sides of every position
	}
	all := page(like.Fact{}, 30)
	if len(all) != 30 {
		r.Fatalf("%d facts, want 30", len(all))
	}
	index := map[pair]int{}
	for n := range 30 {
		c := cmd(n)
		index[pair{c.Item, c.User}] = n
	}
	for k := 2; k < 27; k += 5 {
		anchor := all[k]
		n := index[pair{anchor.Item, anchor.User}]
		do(n, like.OpUnlike, 0)
		if diff := cmp.Diff(all[k+1:], page(anchor, 30)); diff != "" {
			r.Errorf("page behind a fact that was removed (-want +got):\n%s", diff)
		}
		do(n, like.OpLike, 0)
		if diff := cmp.Diff(all[k+1:], page(anchor, 30)); diff != "" {
			r.Errorf("page behind a fact that came again elsewhere (-want +got):\n%s", diff)
		}
		do(n, like.OpUnlike, 0)
		do(n, like.OpLike, anchor.Since)
	}
	never := all[10]
	never.Since = 104
	older := slices.DeleteFunc(slices.Clone(all), func(f like.Fact) bool { return f.Since >= 104 })
	got := page(like.Fact{Item: never.Item, User: never.User, Since: 104}, 30)
	got = slices.DeleteFunc(got, func(f like.Fact) bool { return f.Since >= 104 })
	if diff := cmp.Diff(older, got); diff != "" {
		r.Errorf("page behind a position that no fact ever had (-want +got):\n%s", diff)
	}
}

// checkR6: what one user likes is listed as R4 and R5 say, and at once.
func checkR6(r *run) {
	for n := range 30 {
		want := like.Fact{Item: postN(n), User: "me", Since: r.like("me", postN(n)).State.Since}
		page, err := r.ledger.LikedBy(r.Context(), "me", like.Fact{}, 1)
		if err != nil || len(page.Facts) != 1 || page.Facts[0] != want || page.More != (n > 0) {
			r.Fatalf("LikedBy right after the acknowledgement = %+v, %v, want %+v", page, err, want)
		}
	}
	r.unlike("me", postN(29))
	if page, err := r.ledger.LikedBy(r.Context(), "me", like.Fact{}, 1); err != nil || page.Facts[0].Item != postN(28) {
		r.Errorf("LikedBy right after an unlike = %+v, %v", page, err)
	}
	var items []like.Item
	for n := range 30 {
		items = append(items, postN(n))
	}
	r.agree([]like.User{"me", "nobody"}, items)
	r.positions(func(n int) like.Command { return like.Command{Item: postN(n), User: "ties"} },
		func(after like.Fact, n int) (ledger.Page, error) {
			return r.ledger.LikedBy(r.Context(), "ties", after, n)
		})
	r.walkUnderChurn(
		func(n int) like.Command { return like.Command{Item: postN(n), User: "churn"} },
		func(n int) []like.Fact { return r.likedBy("churn", n) },
		func(f like.Fact) any { return f.Item },
	)
}

// checkR7: LikersAmong is exact, in request order, each user once.
func checkR7(r *run) {
	item := post("1")
	r.likeAll([]like.User{"a", "b", "c", "d"}, item)
	r.unlike("c", item)
	r.like("x", post("2"))
	got, err := r.ledger.LikersAmong(r.Context(), item, []like.User{"d", "x", "b", "d", "c", "a", "b", "nobody", "d"})
	if want := []like.User{"d", "b", "a"}; err != nil || !slices.Equal(got, want) {
		r.Errorf("LikersAmong = %q, %v, want %q", got, err, want)
	}
	for _, users := range [][]like.User{nil, {"nobody"}} {
		if got, err := r.ledger.LikersAmong(r.Context(), item, users); err != nil || len(got) != 0 {
			r.Errorf("LikersAmong(%q) = %q, %v", users, got, err)
		}
	}
}

// checkR10: a done context returns its cause.
func checkR10(r *run) {
	r.like("u", post("1"))
	gone, cancel := context.WithCancelCause(r.Context())
	cancel(errCause)
	for _, c := range slices.Concat(readCalls, keepCalls) {
		if err := c.do(gone, r.ledger); !errors.Is(err, errCause) {
			r.Errorf("%s with a done context: %v, want its cause", c.name, err)
		}
	}
}

package conformance

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// checkW1: an acknowledged command survives a crash.
func checkW1(r *run) { r.survives(func() {}) }

// checkW2: a repeat changes nothing and is acknowledged like the first.
func checkW2(r *run) {
	item := post("1")
	first := r.like("u1", item)
	before := r.settled(item, 1)
	for range 25 {
		if ack := r.like("u1", item); ack.State != first.State || ack.Count != 1 {
			r.Fatalf("repeated like: %+v, first was %+v", ack, first)
		}
		if ack := r.unlike("u2", item); ack.State != (like.State{}) || ack.Count != 1 {
			r.Fatalf("unlike by one who never liked: %+v", ack)
		}
	}
	for _, ack := range r.applyAll(slices.Repeat([]like.Command{{Item: item, User: "u1", Op: like.OpLike}}, 50)) {
		if ack.State != first.State || ack.Count != 1 {
			r.Fatalf("repeated like in a batch: %+v, first was %+v", ack, first)
		}
	}
	if after := r.settled(item, 1); after != before {
		r.Errorf("repeats moved the total from %+v to %+v", before, after)
	}
	r.agree([]like.User{"u1", "u2"}, []like.Item{item})
	for range 10 {
		if ack := r.unlike("u1", item); ack.State != (like.State{}) || ack.Count != 0 {
			r.Fatalf("repeated unlike: %+v", ack)
		}
	}
	r.settled(item, 0)
	r.agree([]like.User{"u1", "u2"}, []like.Item{item})
}

// checkW3: at most one fact exists per user and item, in every view, whoever races.
func checkW3(r *run) {
	users, items := usersN(0, 40), []like.Item{post("a"), post("b"), post("c")}
	r.together(len(users), func(w int) { // every first like of a fresh item at once
		for _, item := range items {
			r.try(like.Command{Item: item, User: users[w], Op: like.OpLike})
		}
	})
	for _, item := range items {
		r.settled(item, int64(len(users)))
	}
	var stop atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		for !stop.Load() {
			r.once(items[0], users)
		}
	})
	r.together(16, func(w int) { // a few pairs, fought over by everyone
		for n := range 60 {
			op := like.OpLike
			if (w+n)%2 == 0 {
				op = like.OpUnlike
			}
			r.try(like.Command{Item: items[n%2], User: users[n%4], Op: op})
		}
	})
	stop.Store(true)
	reader.Wait()
	r.agree(users, items)

	for _, u := range users[:4] {
		r.like(u, items[0])
	}
	r.settled(items[0], int64(len(users)))
	r.together(20, func(int) { r.try(like.Command{Item: items[0], User: users[0], Op: like.OpUnlike}) })
	r.settled(items[0], int64(len(users))-1)
	r.agree(users, items)
}

// once checks on the move that nobody is listed twice.
func (r *run) once(item like.Item, users []like.User) {
	page, err := r.ledger.Likers(r.Context(), item, like.Fact{}, ledger.MaxPage)
	if err != nil {
		r.Errorf("Likers: %v", err)
		return
	}
	seen := map[like.User]bool{}
	for _, f := range page.Facts {
		if seen[f.User] {
			r.Errorf("%q is listed twice", f.User)
		}
		seen[f.User] = true
	}
	if n := len(page.Facts); n > len(users) {
		r.Errorf("%d facts of %d users", n, len(users))
	}
}

// together runs n workers and waits for all of them. They start at once.
func (r *run) together(n int, work func(w int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for w := range n {
		wg.Go(func() {
			<-start
			work(w)
		})
	}
	close(start)
	wg.Wait()
}

// try sends one command from a worker and reports a failure without ending it.
func (r *run) try(cmd like.Command) (ledger.Ack, bool) {
	ack, err := r.ledger.Apply(r.Context(), cmd)
	if err != nil {
		r.Errorf("%v of %v by %q: %v", cmd.Op, cmd.Item, cmd.User, err)
		return ledger.Ack{}, false
	}
	return ack, true
}

// checkW4: a command that starts after another's acknowledgement is folded after
// it: every pair is handed from goroutine to goroutine, and its last word stands.
func checkW4(r *run) {
	users, item := usersN(0, 32), post("1")
	final := make([]bool, len(users))
	r.together(len(users), func(w int) {
		for n := range 20 + w%2 {
			done := make(chan bool)
			cmd := like.Command{Item: item, User: users[w], Op: like.OpUnlike}
			final[w] = n%2 == 0
			if final[w] {
				cmd.Op = like.OpLike
			}
			go func() {
				ack, ok := r.try(cmd)
				done <- ok && ack.State.Liked == final[w]
			}()
			if !<-done {
				r.Errorf("%q: %v was not folded after the acknowledged command before it", users[w], cmd.Op)
				return
			}
		}
	})
	liked := map[like.User]bool{}
	for _, f := range r.agree(users, []like.Item{item}) {
		liked[f.User] = true
	}
	for w, u := range users {
		if liked[u] != final[w] {
			r.Errorf("%q: liked is %v, the last acknowledged command says %v", u, liked[u], final[w])
		}
	}
}

// checkW5: Ack.State is the caller's state right after this command, whoever races;
// a repeated like keeps the first stamp.
func checkW5(r *run) {
	item := post("1")
	first := r.like("u", item).State
	if !first.Liked || first.Since <= 0 {
		r.Fatalf("state after a like: %+v", first)
	}
	r.clock.step(time.Minute)
	for _, at := range []like.Stamp{0, 1, first.Since - 1} {
		if got := r.apply(like.Command{Item: item, User: "u", Op: like.OpLike, At: at}).State; got != first {
			r.Errorf("state after a repeated like at %d: %+v, want %+v", at, got, first)
		}
	}
	if got := r.state("u", item); got != first {
		r.Errorf("Liked after repeats: %+v, want %+v", got, first)
	}
	r.agree([]like.User{"u"}, []like.Item{item})
	if got := r.unlike("u", item).State; got != (like.State{}) {
		r.Errorf("state after an unlike: %+v", got)
	}
	if got := r.like("u", item).State; !got.Liked || got.Since <= first.Since {
		r.Errorf("state after liking again: %+v, first was %+v", got, first)
	}
	r.opposed(item)
}

// opposed has devices of one user like and unlike an item at once. Each is told what
// it did, and not what another one did behind it.
func (r *run) opposed(item like.Item) {
	r.together(32, func(w int) {
		for n := range 20 {
			cmd := like.Command{Item: item, User: "u", Op: like.OpLike}
			if (w+n)%2 == 0 {
				cmd.Op = like.OpUnlike
			}
			ack, ok := r.try(cmd)
			if liked := cmd.Op == like.OpLike; ok && (ack.State.Liked != liked || (ack.State.Since > 0) != liked) {
				r.Errorf("%v among opposed commands is acknowledged with %+v", cmd.Op, ack.State)
				return
			}
		}
	})
	r.agree([]like.User{"u"}, []like.Item{item})
}

// checkW6: Ack.Count counts the caller's own state exactly once, however often the
// command is repeated and however far totals lag; Ack.Version is of that Count.
func checkW6(r *run) {
	item := post("1")
	v := versions{}
	others := int64(0)
	for round := range 4 {
		for range 3 { // faster than any lag
			for range 2 {
				r.counts(v, r.like("me", item), item, others+1)
			}
			for range 2 {
				r.counts(v, r.unlike("me", item), item, others)
			}
		}
		r.settled(item, others)
		r.counts(v, r.like("me", item), item, others+1)
		r.settled(item, others+1)
		r.counts(v, r.like("me", item), item, others+1)
		r.counts(v, r.unlike("me", item), item, others)
		r.likeAll(usersN(round*10, round*10+10), item)
		others += 10
		r.settled(item, others)
	}
	hot, users := post("hot"), usersN(0, 64)
	acks := make([]ledger.Ack, len(users))
	r.together(len(users), func(w int) {
		acks[w], _ = r.try(like.Command{Item: hot, User: users[w], Op: like.OpLike})
	})
	for w, ack := range acks {
		if ack.Count < 1 || ack.Count > int64(len(users)) {
			r.Errorf("%q was told %d likes, of at most %d and at least their own", users[w], ack.Count, len(users))
		}
		v.saw(r, "Ack", like.Total{Item: hot, Count: ack.Count, Version: ack.Version})
	}
	v.saw(r, "Totals", r.settled(hot, int64(len(users))))
}

// counts checks one acknowledgement of the only pair that moves.
func (r *run) counts(v versions, ack ledger.Ack, item like.Item, want int64) {
	r.Helper()
	if ack.Count != want {
		r.Errorf("%v was acknowledged with count %d, want %d", item, ack.Count, want)
	}
	v.saw(r, "Ack", like.Total{Item: item, Count: ack.Count, Version: ack.Version})
	v.saw(r, "Totals", r.total(item))
}

// versions remembers which count each version of an item was seen with.
type versions map[like.Total]int64 // keyed by the total without its count

// saw reports a version that was seen with another count before. Version 0 is
// only ever the total of an item that nobody liked.
func (v versions) saw(t T, where string, total like.Total) {
	t.Helper()
	if total.Version == 0 {
		return
	}
	key := like.Total{Item: total.Item, Version: total.Version}
	if count, ok := v[key]; ok && count != total.Count {
		t.Errorf("%s: version %d of %v has count %d, and had count %d", where, total.Version, total.Item, total.Count, count)
	}
	v[key] = total.Count
}

// checkW7: a like with its original time keeps that time; one that is already
// there keeps its own; a time too far in the future is refused.
func checkW7(r *run) {
	now := time.Now().Truncate(time.Microsecond)
	r.clock.freeze(now)
	item := post("1")
	limit := like.StampOf(now.Add(ledger.MaxAhead))
	for k, at := range []like.Stamp{1, 1_000_000, like.StampOf(now), limit} {
		user := userN(k)
		if got := r.apply(like.Command{Item: item, User: user, Op: like.OpLike, At: at}).State; got.Since != at || !got.Liked {
			r.Errorf("like imported with time %d: %+v", at, got)
		}
		if got := r.like(user, item).State; got.Since != at {
			r.Errorf("like of an imported like: %+v, want since %d", got, at)
		}
		if got := r.apply(like.Command{Item: item, User: user, Op: like.OpLike, At: 7}).State; got.Since != at {
			r.Errorf("second import of a like: %+v, want since %d", got, at)
		}
	}
	r.refused(like.Command{Item: item, User: "late", Op: like.OpLike, At: limit + 1})
	var order []like.User
	for _, f := range r.likers(item, 3) {
		order = append(order, f.User)
	}
	if want := []like.User{"u3", "u2", "u1", "u0"}; !slices.Equal(order, want) {
		r.Errorf("imported likes are listed as %q, want %q", order, want)
	}
	r.agree(append(usersN(0, 4), "late"), []like.Item{item})
}

// refused demands like.ErrInvalid from both ways to send a command.
func (r *run) refused(cmd like.Command) {
	r.Helper()
	_, err := r.ledger.Apply(r.Context(), cmd)
	r.invalid(err, "Apply(%s)", brief(cmd))
	_, err = r.ledger.ApplyMany(r.Context(), []like.Command{cmd})
	r.invalid(err, "ApplyMany(%s)", brief(cmd))
}

// checkW10: an invalid command is like.ErrInvalid and changes nothing.
func checkW10(r *run) {
	good := like.Command{Item: post("1"), User: "u", Op: like.OpLike}
	r.apply(good)
	bad := func(change func(*like.Command)) {
		cmd := good
		change(&cmd)
		r.refused(cmd)
	}
	for _, item := range invalidItems() {
		bad(func(c *like.Command) { c.Item = item })
	}
	for _, user := range invalidUsers() {
		bad(func(c *like.Command) { c.User = user })
	}
	bad(func(c *like.Command) { c.Op = 0 })
	bad(func(c *like.Command) { c.Op = like.OpUnlike + 1 })
	bad(func(c *like.Command) { c.At = -1 })
	bad(func(c *like.Command) { c.Op, c.At = like.OpUnlike, 1 })
	if got := len(r.agree([]like.User{"u"}, []like.Item{post("1")})); got != 1 {
		r.Errorf("%d facts after invalid commands, want 1", got)
	}
	longest := like.Command{
		Item: like.Item{Collection: strings.Repeat("c", like.MaxCollectionBytes), ID: strings.Repeat("i", like.MaxIDBytes)},
		User: like.User(strings.Repeat("u", like.MaxUserBytes)), Op: like.OpLike,
	}
	r.apply(longest)
	r.agree([]like.User{"u", longest.User}, []like.Item{post("1"), longest.Item})
}

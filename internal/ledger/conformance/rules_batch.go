package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// checkW8: acknowledgements are in request order and commands of one pair fold in
// that order; one invalid command refuses the whole call.
func checkW8(r *run) {
	items := []like.Item{post("a"), post("b"), post("c")}
	users := usersN(0, 5)
	var cmds []like.Command
	for n := range 200 { // every pair many times, ending in a like or an unlike
		op := like.OpLike
		if n*7%11 < 4 {
			op = like.OpUnlike
		}
		cmds = append(cmds, like.Command{Item: items[n%3], User: users[n%5], Op: op})
	}
	acks := r.applyAll(cmds)
	last := map[pair]int{}
	for k, cmd := range cmds {
		p, got := pair{cmd.Item, cmd.User}, acks[k].State
		if got.Liked != (cmd.Op == like.OpLike) {
			r.Errorf("command %d, %v, is acknowledged with %+v", k, cmd.Op, got)
		}
		if before, ok := last[p]; ok && got.Liked && acks[before].State.Liked && got != acks[before].State {
			r.Errorf("command %d, a repeated like, is acknowledged with %+v, the one before it with %+v", k, got, acks[before].State)
		}
		last[p] = k
	}
	for p, k := range last {
		if now := r.state(p.user, p.item); now != acks[k].State {
			r.Errorf("%v by %q ends with %v, acknowledged as %+v, read as %+v", p.item, p.user, cmds[k].Op, acks[k].State, now)
		}
	}
	r.agree(users, items)
	r.ackOrder()
	r.allOrNothing()
}

// ackOrder sends a batch whose acknowledgements all differ.
func (r *run) ackOrder() {
	r.Helper()
	var cmds []like.Command
	for n := range 20 {
		cmds = append(cmds, like.Command{Item: postN(n), User: "batch", Op: like.OpLike, At: like.Stamp(1000 - n)})
	}
	for k, ack := range r.applyAll(cmds) {
		if ack.State.Since != cmds[k].At {
			r.Errorf("acknowledgement %d is %+v, want since %d", k, ack, cmds[k].At)
		}
	}
	for k := range cmds {
		cmds[k] = like.Command{Item: postN(k + 100), User: "batch", Op: like.OpLike}
	}
	acks := r.applyAll(cmds)
	for k, ack := range acks {
		if k > 0 && ack.State.Since <= acks[k-1].State.Since {
			r.Errorf("command %d of a batch has stamp %d, the one before it %d", k, ack.State.Since, acks[k-1].State.Since)
		}
	}
}

// allOrNothing sends batches at the bounds and with one invalid command.
func (r *run) allOrNothing() {
	r.Helper()
	fresh := like.Item{Collection: "games", ID: "fresh"}
	cmds := make([]like.Command, ledger.MaxBatch)
	for k := range cmds {
		cmds[k] = like.Command{Item: fresh, User: userN(k), Op: like.OpLike}
	}
	for _, at := range []int{0, 500, len(cmds) - 1} {
		spoilt := slices.Clone(cmds)
		spoilt[at].User = ""
		_, err := r.ledger.ApplyMany(r.Context(), spoilt)
		r.invalid(err, "ApplyMany with an invalid command at %d", at)
	}
	_, err := r.ledger.ApplyMany(r.Context(), append(slices.Clone(cmds), cmds[0]))
	r.invalid(err, "ApplyMany of %d commands", ledger.MaxBatch+1)
	r.settled(fresh, 0)
	if got := r.likers(fresh, viewPage); len(got) != 0 {
		r.Errorf("refused batches left %d facts", len(got))
	}
	if acks, err := r.ledger.ApplyMany(r.Context(), nil); err != nil || len(acks) != 0 {
		r.Errorf("ApplyMany of nothing: %d acknowledgements, %v", len(acks), err)
	}
	r.applyAll(cmds)
	r.settled(fresh, int64(len(cmds)))
}

// pair names what at most one fact exists of.
type pair struct {
	item like.Item
	user like.User
}

var errCause = errors.New("the caller lost interest")

// checkW9: a done context returns its cause, and the command is applied entirely or
// not at all.
func checkW9(r *run) {
	gone, cancel := context.WithCancelCause(r.Context())
	cancel(errCause)
	for _, c := range writeCalls {
		if err := c.do(gone, r.ledger); !errors.Is(err, errCause) {
			r.Errorf("%s with a done context: %v, want its cause", c.name, err)
		}
	}
	users, items := append(usersN(0, 24), "u"), []like.Item{post("1"), post("2"), post("3")}
	r.together(24, func(w int) {
		for n := range 30 {
			ctx, cancel := context.WithCancelCause(r.Context())
			cmd := like.Command{Item: items[n%3], User: users[w], Op: like.OpLike}
			if n%5 == 4 {
				cmd.Op = like.OpUnlike
			}
			var leaves sync.WaitGroup
			if n%2 == 0 {
				leaves.Go(func() { cancel(errCause) })
			}
			ack, err := r.ledger.Apply(ctx, cmd)
			leaves.Wait()
			switch {
			case err == nil && ack.State.Liked != (cmd.Op == like.OpLike):
				// A command that was given up may still come later, never another's.
				r.Logf("%v of %q was overtaken by one that was given up", cmd.Op, users[w])
			case err != nil && !errors.Is(err, errCause):
				r.Errorf("Apply with a context that ends: %v", err)
			}
			cancel(nil)
		}
	})
	r.quiet(users, items)
	r.agree(users, items)
	r.leavesSlices()
}

// leavesSlices demands that the slice of a call that was given up is its caller's
// again: what the caller writes into it is not a command.
func (r *run) leavesSlices() {
	r.Helper()
	items, users := []like.Item{post("kept")}, append(usersN(100, 116), "stranger")
	r.together(16, func(w int) {
		cmds := make([]like.Command, 200)
		for range 20 {
			fill(cmds, like.Command{Item: items[0], User: users[w], Op: like.OpLike})
			ctx, cancel := context.WithCancelCause(r.Context())
			var leaves sync.WaitGroup
			leaves.Go(func() { cancel(errCause) })
			if _, err := r.ledger.ApplyMany(ctx, cmds); err != nil && !errors.Is(err, errCause) && !errors.Is(err, like.ErrOverloaded) {
				r.Errorf("ApplyMany with a context that ends: %v", err)
			}
			fill(cmds, like.Command{Item: items[0], User: "stranger", Op: like.OpLike})
			leaves.Wait()
		}
	})
	r.quiet(users, items)
	if r.state("stranger", items[0]).Liked {
		r.Errorf("a command that was never sent was applied")
	}
}

func fill(cmds []like.Command, cmd like.Command) {
	for i := range cmds {
		cmds[i] = cmd
	}
}

// quiet waits until commands that were given up, and may come a little later,
// have come: until two looks at all states, with commands that came later between
// them, are the same.
func (r *run) quiet(users []like.User, items []like.Item) {
	r.Helper()
	before := r.ownStates(users, items)
	r.eventually(func() bool {
		<-time.After(20*time.Millisecond + r.h.Settle)
		for _, op := range []like.Op{like.OpLike, like.OpUnlike} {
			r.getsIn(like.Command{Item: items[0], User: "later", Op: op})
		}
		now := r.ownStates(users, items)
		same := slices.Equal(before, now)
		before = now
		return same
	})
}

// getsIn sends a command until the queue, which commands that were given up fill, has
// room for it.
func (r *run) getsIn(cmd like.Command) {
	r.Helper()
	r.eventually(func() bool {
		_, err := r.ledger.Apply(r.Context(), cmd)
		if err != nil && !errors.Is(err, like.ErrOverloaded) {
			r.Errorf("%v of %v by %q: %v", cmd.Op, cmd.Item, cmd.User, err)
		}
		return !errors.Is(err, like.ErrOverloaded)
	})
}

// checkW11: later accepted means a larger stamp, also when the clock steps back
// and across a reopen.
func checkW11(r *run) {
	item, last, n := post("1"), like.Stamp(0), 0
	accept := func(what string) {
		r.Helper()
		for range 20 {
			since := r.like(userN(n), item).State.Since
			if since <= last {
				r.Errorf("%s: stamp %d of a later like is not larger than %d", what, since, last)
			}
			last = since
			n++
		}
	}
	r.clock.step(time.Hour)
	accept("clock an hour ahead")
	r.clock.step(-2 * time.Hour)
	accept("clock stepped back")
	r.clock.freeze(time.Now())
	accept("clock stands still")
	r.reopen()
	accept("reopened with an earlier clock")
	r.clock.freeze(time.Now().Add(2 * time.Hour))
	accept("clock ahead again")

	var want []like.User
	for k := n - 1; k >= 0; k-- {
		want = append(want, userN(k))
	}
	var got []like.User
	for _, f := range r.likers(item, viewPage) {
		got = append(got, f.User)
	}
	if !slices.Equal(got, want) {
		r.Errorf("likers are not listed in order of acceptance: %q", got)
	}
	r.settled(item, int64(n))
}

// invalid demands like.ErrInvalid.
func (r *run) invalid(err error, format string, args ...any) {
	r.Helper()
	if !errors.Is(err, like.ErrInvalid) {
		r.Errorf("%s: %v, want ErrInvalid", fmt.Sprintf(format, args...), err)
	}
}

// invalidItems are items that cannot exist.
func invalidItems() []like.Item {
	return []like.Item{
		{},
		{Collection: "posts"},
		{ID: "1"},
		{Collection: "Posts", ID: "1"},
		{Collection: "1posts", ID: "1"},
		{Collection: strings.Repeat("c", like.MaxCollectionBytes+1), ID: "1"},
		post("."), post(".."), post("a\x00b"), post("a\nb"), post("a\u0085b"), post("\xff"),
		post(strings.Repeat("i", like.MaxIDBytes+1)),
	}
}

// invalidUsers are users that cannot exist.
func invalidUsers() []like.User {
	return []like.User{"", "a\x00b", "a\nb", "\xc3\x28", like.User(strings.Repeat("u", like.MaxUserBytes+1))}
}

// brief prints a command without its full length.
func brief(cmd like.Command) string {
	return fmt.Sprintf("%v %.40q by %.40q at %d", cmd.Op, cmd.Item.String(), string(cmd.User), cmd.At)
}

package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// patience is generous because a loaded machine is not a broken ledger.
const patience = time.Minute

// run is one rule at work on one ledger.
type run struct {
	T
	tb     testing.TB // for the harness: directories and cleanups
	h      Harness
	clock  *wall
	ledger ledger.Ledger
	// patience bounds waiting for what a ledger owes "promptly" or "soon".
	patience time.Duration
	// between is called between the pages of every walk, unless nil.
	between func()
}

// newRun opens a ledger for one rule. Failures go to t; tb serves the harness.
func newRun(t T, tb testing.TB, h Harness) *run {
	r := &run{T: t, tb: tb, h: h, clock: &wall{}, patience: patience}
	r.ledger = h.Open(tb, r.clock.now)
	return r
}

// reopen ends the ledger hard and opens what it left.
func (r *run) reopen() {
	r.Helper()
	if r.h.Reopen == nil {
		r.Fatalf("the harness cannot reopen: name the rule in Lacks")
	}
	r.ledger = r.h.Reopen(r.tb, r.ledger)
}

// wall is a clock that a rule can set. It follows the real one by an offset.
type wall struct {
	mu     sync.Mutex
	offset time.Duration
	frozen time.Time
}

func (w *wall) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.frozen.IsZero() {
		return w.frozen
	}
	return time.Now().Add(w.offset)
}

// step moves the clock, back when d is negative.
func (w *wall) step(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset += d
}

// freeze lets the clock stand still at t.
func (w *wall) freeze(t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen = t
}

func post(id string) like.Item { return like.Item{Collection: "posts", ID: id} }
func postN(n int) like.Item    { return post(fmt.Sprintf("p%d", n)) }
func userN(n int) like.User    { return like.User(fmt.Sprintf("u%d", n)) }
func usersN(from, to int) []like.User {
	var users []like.User
	for n := from; n < to; n++ {
		users = append(users, userN(n))
	}
	return users
}

// apply sends one command that has to succeed.
func (r *run) apply(cmd like.Command) ledger.Ack {
	r.Helper()
	ack, err := r.ledger.Apply(r.Context(), cmd)
	if err != nil {
		r.Fatalf("%v of %v by %q: %v", cmd.Op, cmd.Item, cmd.User, err)
	}
	if ack.Count < 0 {
		r.Fatalf("%v of %v by %q: acknowledged with count %d", cmd.Op, cmd.Item, cmd.User, ack.Count)
	}
	return ack
}

func (r *run) like(user like.User, item like.Item) ledger.Ack {
	r.Helper()
	return r.apply(like.Command{Item: item, User: user, Op: like.OpLike})
}

func (r *run) unlike(user like.User, item like.Item) ledger.Ack {
	r.Helper()
	return r.apply(like.Command{Item: item, User: user, Op: like.OpUnlike})
}

// applyAll sends commands in full batches.
func (r *run) applyAll(cmds []like.Command) []ledger.Ack {
	r.Helper()
	var all []ledger.Ack
	for batch := range slices.Chunk(cmds, ledger.MaxBatch) {
		acks, err := r.ledger.ApplyMany(r.Context(), batch)
		if err != nil {
			r.Fatalf("batch of %d: %v", len(batch), err)
		}
		if len(acks) != len(batch) {
			r.Fatalf("batch of %d: %d acknowledgements", len(batch), len(acks))
		}
		all = append(all, acks...)
	}
	return all
}

// likeAll lets each user like the item.
func (r *run) likeAll(users []like.User, item like.Item) {
	r.Helper()
	cmds := make([]like.Command, len(users))
	for k, u := range users {
		cmds[k] = like.Command{Item: item, User: u, Op: like.OpLike}
	}
	r.applyAll(cmds)
}

// state asks for one user's state of one item.
func (r *run) state(user like.User, item like.Item) like.State {
	r.Helper()
	states, err := r.ledger.Liked(r.Context(), user, []like.Item{item})
	if err != nil || len(states) != 1 {
		r.Fatalf("Liked(%q, %v) = %v, %v", user, item, states, err)
	}
	return states[0]
}

// total asks for one total as it stands.
func (r *run) total(item like.Item) like.Total {
	r.Helper()
	totals, err := r.ledger.Totals(r.Context(), []like.Item{item})
	if err != nil || len(totals) != 1 || totals[0].Item != item {
		r.Fatalf("Totals(%v) = %v, %v", item, totals, err)
	}
	if totals[0].Count < 0 {
		r.Errorf("Totals(%v) is negative: %+v", item, totals[0])
	}
	return totals[0]
}

// settle waits until totals have stopped moving, when commands have.
func (r *run) settle() {
	if r.h.Settle > 0 {
		<-time.After(r.h.Settle)
	}
}

// settled waits for totals to stop moving and demands one.
func (r *run) settled(item like.Item, want int64) like.Total {
	r.Helper()
	r.settle()
	return r.totalIs(item, want)
}

// totalIs demands a total after settle. A lagging ledger that is late gets more
// time; one that overshoots does not come back.
func (r *run) totalIs(item like.Item, want int64) like.Total {
	r.Helper()
	got := r.total(item)
	if r.h.Settle > 0 {
		r.eventually(func() bool {
			got = r.total(item)
			return got.Count == want
		})
	}
	if got.Count != want {
		r.Errorf("total of %v settled at %d, want %d", item, got.Count, want)
	}
	return got
}

// eventually polls until done reports true and reports whether it ever did.
func (r *run) eventually(done func() bool) bool {
	deadline := time.Now().Add(r.patience)
	for !done() {
		if time.Now().After(deadline) {
			return false
		}
		<-time.After(time.Millisecond)
	}
	return true
}

// pages walks one list to its end in pages of n. It checks what every page owes
// (R4) and returns the facts in the ledger's order. read is Likers or LikedBy of
// one owner; id is what may come only once.
func (r *run) pages(what string, n int, read func(after like.Fact, n int) (ledger.Page, error), id func(like.Fact) any) []like.Fact {
	r.Helper()
	var all []like.Fact
	var after like.Fact
	seen := map[any]bool{}
	for {
		page, err := read(after, n)
		if err != nil {
			r.Fatalf("%s behind %+v: %v", what, after, err)
		}
		if len(page.Facts) > n {
			r.Fatalf("%s: %d facts on a page of %d", what, len(page.Facts), n)
		}
		if page.More && len(page.Facts) == 0 {
			r.Fatalf("%s: an empty page says that more follows", what)
		}
		for _, f := range page.Facts {
			if len(all) > 0 && f.Since > all[len(all)-1].Since {
				r.Fatalf("%s: %+v stands behind the older %+v", what, f, all[len(all)-1])
			}
			if seen[id(f)] {
				r.Fatalf("%s: %+v comes twice in one walk", what, f)
			}
			seen[id(f)] = true
			all = append(all, f)
		}
		if !page.More {
			return all
		}
		after = page.Facts[len(page.Facts)-1]
		if r.between != nil {
			r.between()
		}
	}
}

// likers walks the list of an item in pages of n.
func (r *run) likers(item like.Item, n int) []like.Fact {
	r.Helper()
	facts := r.pages(fmt.Sprintf("Likers(%v)", item), n, func(after like.Fact, n int) (ledger.Page, error) {
		return r.ledger.Likers(r.Context(), item, after, n)
	}, func(f like.Fact) any { return f.User })
	for _, f := range facts {
		if f.Item != item {
			r.Fatalf("Likers(%v) has %+v", item, f)
		}
	}
	return facts
}

// likedBy walks the list of a user in pages of n.
func (r *run) likedBy(user like.User, n int) []like.Fact {
	r.Helper()
	facts := r.pages(fmt.Sprintf("LikedBy(%q)", user), n, func(after like.Fact, n int) (ledger.Page, error) {
		return r.ledger.LikedBy(r.Context(), user, after, n)
	}, func(f like.Fact) any { return f.Item })
	for _, f := range facts {
		if f.User != user {
			r.Fatalf("LikedBy(%q) has %+v", user, f)
		}
	}
	return facts
}

// sorted orders facts by what both lists leave open, so that walks of two ledgers
// can be compared.
func sorted(facts []like.Fact) []like.Fact {
	return slices.SortedFunc(slices.Values(facts), func(a, b like.Fact) int {
		return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(a.User, b.User),
			cmp.Compare(a.Item.Collection, b.Item.Collection), cmp.Compare(a.Item.ID, b.Item.ID))
	})
}

package conformance

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

func (r *run) audit(item like.Item, repair bool) ledger.Audit {
	r.Helper()
	a, err := r.ledger.Audit(r.Context(), item, repair)
	if err != nil {
		r.Fatalf("Audit(%v): %v", item, err)
	}
	return a
}

func (r *run) auditAll(repair bool) []ledger.Audit {
	r.Helper()
	var all []ledger.Audit
	for a, err := range r.ledger.AuditAll(r.Context(), repair) {
		if err != nil {
			r.Fatalf("AuditAll: %v", err)
		}
		all = append(all, a)
	}
	return all
}

// checkA1: an audit finds no drift in a sound ledger, also while commands are
// applied and totals lag.
func checkA1(r *run) {
	items := []like.Item{post("a"), post("b")}
	users := usersN(0, 8)
	r.likeAll(users[:4], items[0]) // and at once, before totals can have followed
	var commands atomic.Int64
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.together(len(users), func(w int) {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				op := like.OpLike
				if n%2 == 1 {
					op = like.OpUnlike
				}
				r.try(like.Command{Item: items[n/2%2], User: users[w], Op: op})
				commands.Add(1)
			}
		})
	}()
	defer func() { <-done }()
	defer close(stop)
	for n := 0; n < 100 || commands.Load() < 500; n++ { // both have to get their turn
		audits := []ledger.Audit{r.audit(items[n%2], n%4 == 3)}
		if n%10 == 0 {
			audits = append(audits, r.auditAll(n%20 == 0)...)
		}
		for _, a := range audits {
			if a.Drift() || a.Repaired {
				r.Fatalf("audit of a sound ledger under load: %+v", a)
			}
			if a.Facts < 0 || a.Facts > int64(len(users)) {
				r.Fatalf("audit counted %d facts of %d users", a.Facts, len(users))
			}
		}
	}
}

// checkA2: without repair an audit changes nothing; with repair it corrects exactly,
// and commands applied meanwhile are kept.
func checkA2(r *run) {
	if r.h.Injure == nil {
		r.Fatalf("the harness cannot injure a ledger: name the rule in Lacks")
	}
	injured := 0
	for n, in := range []Injury{
		{Skew: 1},
		{Skew: -1},
		{Skew: -20},
		{Skew: 1000},
		{Unlist: true},
		{Phantom: true},
	} {
		item := postN(n)
		users := usersN(0, 9)
		r.likeAll(users, item)
		r.unlike(users[8], item)
		r.settled(item, 8)
		in.Fact = like.Fact{Item: item, User: users[3], Since: r.state(users[3], item).Since}
		if in.Phantom {
			in.Fact = like.Fact{Item: item, User: users[8], Since: in.Fact.Since}
		}
		if !r.h.Injure(r.tb, r.ledger, in) {
			continue
		}
		injured++
		r.heal(in, 8)
		r.agreeItem(item, users, r.ownStates(users, []like.Item{item}))
	}
	if injured == 0 {
		r.Errorf("the harness injured nothing: name the rule in Lacks")
	}
	r.mistakesNothing()
}

// mistakesNothing demands that the repair of one item whose list lacks a fact leaves
// a total that was right.
func (r *run) mistakesNothing() {
	r.Helper()
	item, users := post("unlisted"), usersN(0, 8)
	r.likeAll(users, item)
	r.settled(item, 8)
	in := Injury{Unlist: true, Fact: like.Fact{Item: item, User: users[3], Since: r.state(users[3], item).Since}}
	if !r.h.Injure(r.tb, r.ledger, in) {
		return
	}
	r.audit(item, true)
	r.settled(item, 8)
	r.auditAll(true)
	r.settled(item, 8)
	r.agreeItem(item, users, r.ownStates(users, []like.Item{item}))
}

// heal demands that audits find one injury again and again until one repairs it,
// and that commands applied meanwhile are kept.
func (r *run) heal(in Injury, facts int64) {
	r.Helper()
	item := in.Fact.Item
	want := ledger.Audit{Item: item, Facts: facts, Total: facts + in.Skew}
	if in.Unlist {
		want.Unlisted = 1
	}
	if in.Phantom {
		want.Phantom = 1
	}
	for range 2 {
		if got := r.auditFor(in, false); got != want {
			r.Errorf("audit after injury %+v: %+v, want %+v", in, got, want)
		}
	}
	r.like("meanwhile", item)
	r.settle()
	want.Facts, want.Total, want.Repaired = facts+1, facts+1+in.Skew, true
	r.together(8, func(w int) {
		if w == 0 {
			if got := r.auditFor(in, true); got.Facts-got.Total != want.Facts-want.Total || got.Unlisted != want.Unlisted ||
				got.Phantom != want.Phantom || !got.Repaired {
				r.Errorf("repair after injury %+v: %+v, want %+v or one with later likes", in, got, want)
			}
			return
		}
		r.try(like.Command{Item: item, User: like.User("meanwhile-" + string(userN(w))), Op: like.OpLike})
	})
	sound := ledger.Audit{Item: item, Facts: facts + 8, Total: facts + 8}
	if got := r.auditFor(in, false); got != sound {
		r.Errorf("audit after repair of %+v: %+v, want %+v", in, got, sound)
	}
	if n, err := r.ledger.EraseUser(r.Context(), "meanwhile"); err != nil || n != 1 {
		r.Errorf("erase after repair: %d, %v", n, err)
	}
	for w := range usersN(1, 8) {
		r.unlike(like.User("meanwhile-"+string(userN(w+1))), item)
	}
	r.settled(item, facts)
}

// auditFor audits the item of an injury. Facts missing from a list may be left to
// AuditAll.
func (r *run) auditFor(in Injury, repair bool) ledger.Audit {
	r.Helper()
	if !in.Unlist {
		return r.audit(in.Fact.Item, repair)
	}
	for _, a := range r.auditAll(repair) {
		if a.Item == in.Fact.Item {
			return a
		}
	}
	return ledger.Audit{}
}

// checkA3: AuditAll yields every item with a fact, a list entry or a total once.
func checkA3(r *run) {
	want := map[like.Item]int64{}
	for n := range 25 {
		item := like.Item{Collection: []string{"posts", "games", "p"}[n%3], ID: string(userN(n))}
		r.likeAll(usersN(0, n%4+1), item)
		want[item] = int64(n%4 + 1)
	}
	r.like("u", post("not any more"))
	r.unlike("u", post("not any more"))
	want[post("not any more")] = 0
	r.settle()
	r.eventually(func() bool { return r.total(post("not any more")).Version > 0 }) // what else would be audited?
	got := map[like.Item]int64{}
	for _, a := range r.auditAll(false) {
		if _, again := got[a.Item]; again {
			r.Errorf("%v is audited twice", a.Item)
		}
		if a.Drift() {
			r.Errorf("drift in a sound ledger: %+v", a)
		}
		got[a.Item] = a.Facts
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("audited facts by item (-want +got):\n%s", diff)
	}
	for range r.ledger.AuditAll(r.Context(), false) {
		break // leaving early is harmless
	}
}

// checkA4: EraseUser unlikes everything that a user likes, through the fold of an
// ordinary unlike; a second run returns 0.
func checkA4(r *run) {
	users := usersN(0, 5)
	var items []like.Item
	for n := range 30 {
		items = append(items, postN(n))
		r.likeAll(users, postN(n))
	}
	gone, cancel := context.WithCancelCause(r.Context())
	cancel(errCause)
	if _, err := r.ledger.EraseUser(gone, users[1]); !errors.Is(err, errCause) {
		r.Errorf("EraseUser with a done context: %v, want its cause", err)
	}
	for _, want := range []int64{30, 0} {
		r.together(4, func(w int) {
			if w > 0 { // others go on
				r.try(like.Command{Item: postN(w), User: users[w+1], Op: like.OpLike})
				return
			}
			if n, err := r.ledger.EraseUser(r.Context(), users[0]); err != nil || n != want {
				r.Errorf("EraseUser = %d, %v, want %d", n, err, want)
			}
		})
		for _, f := range r.agree(users, items) {
			if f.User == users[0] {
				r.Errorf("%+v survived the erasure of its user", f)
			}
		}
	}
	if n, err := r.ledger.EraseUser(r.Context(), "nobody"); err != nil || n != 0 {
		r.Errorf("EraseUser of one who likes nothing = %d, %v", n, err)
	}
	if ack := r.like(users[0], items[0]); !ack.State.Liked || ack.Count < 1 {
		r.Errorf("like after an erasure: %+v", ack)
	}
	r.agree(users, items)
}

// checkA5: RemoveItem unlikes an item for everyone; it can be liked again, and the
// version of its total goes on growing.
func checkA5(r *run) {
	users, item, other := usersN(0, 40), post("1"), post("10")
	r.likeAll(users, item)
	r.likeAll(users, other)
	before := r.settled(item, 40)
	for _, want := range []int64{40, 0} {
		if n, err := r.ledger.RemoveItem(r.Context(), item); err != nil || n != want {
			r.Errorf("RemoveItem = %d, %v, want %d", n, err, want)
		}
		if after := r.settled(item, 0); after.Version <= before.Version {
			r.Errorf("total after RemoveItem: %+v, before %+v", after, before)
		}
		if got := len(r.agree(users, []like.Item{item, other})); got != 40 {
			r.Errorf("%d facts after RemoveItem, want the other item's 40", got)
		}
	}
	before = r.settled(item, 0)
	if ack := r.like(users[0], item); !ack.State.Liked || ack.Count != 1 {
		r.Errorf("like after RemoveItem: %+v", ack)
	}
	if after := r.settled(item, 1); after.Version <= before.Version {
		r.Errorf("total of a removed item liked again: %+v, before %+v", after, before)
	}
	if n, err := r.ledger.RemoveItem(r.Context(), post("unknown")); err != nil || n != 0 {
		r.Errorf("RemoveItem of an item nobody likes = %d, %v", n, err)
	}
	r.agree(users, []like.Item{item, other})
}

// checkA6: Export yields every fact that stands throughout exactly once.
func checkA6(r *run) {
	stays := map[like.Fact]bool{}
	for n := range 300 {
		item := postN(n % 7)
		stays[like.Fact{Item: item, User: userN(n), Since: r.like(userN(n), item).State.Since}] = true
	}
	r.whileReading(func() {
		r.try(like.Command{Item: postN(3), User: "comes and goes", Op: like.OpLike})
		r.try(like.Command{Item: postN(3), User: "comes and goes", Op: like.OpUnlike})
	}, func() {
		for range 5 {
			seen := map[like.Fact]int{}
			for f, err := range r.ledger.Export(r.Context()) {
				if err != nil {
					r.Fatalf("Export: %v", err)
				}
				seen[f]++
			}
			for f := range stays {
				if seen[f] != 1 {
					r.Fatalf("Export yields %+v %d times", f, seen[f])
				}
			}
			for f := range seen {
				if !stays[f] && f.User != "comes and goes" {
					r.Fatalf("Export yields %+v, which nobody liked", f)
				}
			}
		}
	})
	for range r.ledger.Export(r.Context()) {
		break // leaving early is harmless
	}
}

// checkA7: a backup holds every command acknowledged before the call and opens as a
// ledger of the same kind; a directory that exists is like.ErrInvalid.
func checkA7(r *run) {
	dir := filepath.Join(r.tb.TempDir(), "backup")
	users, items := usersN(0, 50), []like.Item{post("a"), post("b")}
	r.likeAll(users, items[0])
	r.likeAll(users[:7], items[1])
	if r.h.Restore == nil {
		if err := r.ledger.Backup(r.Context(), dir); !errors.Is(err, errors.ErrUnsupported) {
			r.Errorf("Backup by a driver without Restore: %v, want errors.ErrUnsupported", err)
		}
		return
	}
	late := usersN(1000, 1500)
	r.together(2, func(w int) { // serving goes on
		if w == 0 {
			if err := r.ledger.Backup(r.Context(), dir); err != nil {
				r.Errorf("Backup: %v", err)
			}
			return
		}
		for _, u := range late {
			r.try(like.Command{Item: items[1], User: u, Op: like.OpLike})
		}
	})
	r.invalid(r.ledger.Backup(r.Context(), dir), "Backup into a directory that exists")
	live := r.ledger
	r.ledger = r.h.Restore(r.tb, dir, r.clock.now)
	found := map[pair]bool{}
	for _, f := range r.agree(slices.Concat(users, late), items) {
		found[pair{f.Item, f.User}] = true
	}
	for k, u := range users {
		if !found[pair{items[0], u}] || k < 7 && !found[pair{items[1], u}] {
			r.Errorf("the backup misses what %q liked before", u)
		}
	}
	r.like("later", items[0])
	r.ledger = live
	if r.state("later", items[0]).Liked {
		r.Errorf("a write to the copy reached the original")
	}
	r.agree(slices.Concat(users, late), items)
}

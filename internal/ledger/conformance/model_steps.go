package conformance

import (
	"math/rand/v2"
	"slices"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// command sends the commands of a step, tells the oracle with which stamps they
// were accepted, and compares the acknowledgements.
func (m *model) command(o op) {
	m.Helper()
	before := map[pair]like.State{}
	for _, c := range o.cmds {
		before[pair{c.Item, c.User}] = m.oracleState(c.User, c.Item)
	}
	var acks []ledger.Ack
	if o.kind == opBatch {
		acks = m.applyAll(o.cmds)
	} else {
		acks = []ledger.Ack{m.apply(o.cmds[0])}
	}
	told := slices.Clone(o.cmds)
	for k := range told {
		if told[k].Op == like.OpLike && told[k].At == 0 && acks[k].State.Liked {
			told[k].At = acks[k].State.Since
		}
	}
	want, err := m.oracle.ApplyMany(m.Context(), told)
	if err != nil {
		m.Fatalf("oracle: %v", err)
	}
	last := map[pair]int{}
	for k, c := range o.cmds {
		last[pair{c.Item, c.User}] = k
	}
	for k, c := range o.cmds {
		p := pair{c.Item, c.User}
		m.compareAck(o, k, acks[k], want)
		if k == last[p] {
			m.stamped(o, p, before[p], acks[k].State)
			m.changed[c.Item] = m.changed[c.Item] || acks[k].State != before[p]
		}
	}
}

// compareAck demands the oracle's state after command k or a later one of the same
// pair, and the oracle's count where nothing else was under way.
func (m *model) compareAck(o op, k int, ack ledger.Ack, want []ledger.Ack) {
	m.Helper()
	found := false
	for j := k; j < len(want); j++ {
		same := o.cmds[j].Item == o.cmds[k].Item && o.cmds[j].User == o.cmds[k].User
		found = found || same && want[j].State == ack.State
	}
	if !found {
		m.Fatalf("command %d was acknowledged with %+v, the oracle says %+v", k, ack, want[k])
	}
	if len(want) == 1 && m.h.Settle == 0 && ack.Count != want[0].Count {
		m.Fatalf("acknowledged with count %d, the oracle says %d", ack.Count, want[0].Count)
	}
	if ack.State.Liked && ack.Count < 1 { // no upper bound: unlikes may lag behind likes
		m.Fatalf("command %d was acknowledged with %+v", k, ack)
	}
	m.versions.saw(m, "Ack", like.Total{Item: o.cmds[k].Item, Count: ack.Count, Version: ack.Version})
}

// stamped checks that a stamp that the ledger chose is larger than all before it.
func (m *model) stamped(o op, p pair, before, after like.State) {
	m.Helper()
	imported := slices.ContainsFunc(o.cmds, func(c like.Command) bool {
		return c.Item == p.item && c.User == p.user && c.At == after.Since
	})
	if !after.Liked || after == before || imported {
		return
	}
	if o.kind == opApply && after.Since <= m.last {
		m.Fatalf("stamp %d is not larger than %d, accepted before", after.Since, m.last)
	}
	m.last = max(m.last, after.Since)
}

func (m *model) oracleState(user like.User, item like.Item) like.State {
	m.Helper()
	states, err := m.oracle.Liked(m.Context(), user, []like.Item{item})
	if err != nil {
		m.Fatalf("oracle: %v", err)
	}
	return states[0]
}

func (m *model) erase(user like.User) {
	m.Helper()
	states, err := m.oracle.Liked(m.Context(), user, modelItems)
	if err != nil {
		m.Fatalf("oracle: %v", err)
	}
	for k, s := range states {
		m.changed[modelItems[k]] = m.changed[modelItems[k]] || s.Liked
	}
	want, err := m.oracle.EraseUser(m.Context(), user)
	if err != nil {
		m.Fatalf("oracle: %v", err)
	}
	if got, err := m.ledger.EraseUser(m.Context(), user); err != nil || got != want {
		m.Fatalf("EraseUser = %d, %v, the oracle says %d", got, err, want)
	}
}

func (m *model) remove(item like.Item) {
	m.Helper()
	want, err := m.oracle.RemoveItem(m.Context(), item)
	if err != nil {
		m.Fatalf("oracle: %v", err)
	}
	if got, err := m.ledger.RemoveItem(m.Context(), item); err != nil || got != want {
		m.Fatalf("RemoveItem = %d, %v, the oracle says %d", got, err, want)
	}
	m.changed[item] = m.changed[item] || want > 0
}

// injure falsifies the ledger, demands that the audit finds exactly that, and
// repairs it. What the ledger cannot have, or what would be no injury, is left out.
func (m *model) injure(o op) {
	m.Helper()
	if m.h.Injure == nil {
		return
	}
	state := m.oracleState(o.user, o.item)
	in := Injury{Fact: like.Fact{Item: o.item, User: o.user, Since: state.Since}}
	switch {
	case o.kind == opSkew && o.n != 0:
		in.Skew = int64(o.n)
	case o.kind == opUnlist && state.Liked:
		in.Unlist = true
	case o.kind == opPhantom && !state.Liked:
		in.Phantom, in.Fact.Since = true, like.Stamp(o.n)
	default:
		return
	}
	if !m.h.Injure(m.tb, m.ledger, in) {
		return
	}
	want := m.truth(o.item)
	want.Total += in.Skew
	if in.Unlist {
		want.Unlisted = 1
	}
	if in.Phantom {
		want.Phantom = 1
	}
	m.equal("audit after an injury", want, m.auditFor(in, false))
	want.Repaired = true
	m.equal("repair of an injury", want, m.auditFor(in, true))
	m.equal("audit after a repair", m.truth(o.item), m.auditFor(in, false))
	m.changed[o.item] = m.changed[o.item] || in.Skew != 0
}

// truth is the audit of an item without drift.
func (m *model) truth(item like.Item) ledger.Audit {
	m.Helper()
	a, err := m.oracle.Audit(m.Context(), item, false)
	if err != nil || a.Drift() {
		m.Fatalf("oracle: %+v, %v", a, err)
	}
	return a
}

// read compares one read.
func (m *model) read(o op) {
	m.Helper()
	ctx := m.Context()
	switch o.kind {
	case opLiked:
		want, _ := m.oracle.Liked(ctx, o.user, modelItems)
		got, err := m.ledger.Liked(ctx, o.user, modelItems)
		m.served("Liked", want, got, err)
	case opTotals:
		m.readTotals()
	case opLikers:
		list := m.likers(o.item, o.n)
		m.equal("Likers in another page size", list, m.likers(o.item, ledger.MaxPage))
		page, err := m.oracle.Likers(ctx, o.item, like.Fact{}, ledger.MaxPage)
		m.served("Likers", sorted(page.Facts), sorted(list), err)
	case opLikedBy:
		list := m.likedBy(o.user, o.n)
		m.equal("LikedBy in another page size", list, m.likedBy(o.user, ledger.MaxPage))
		page, err := m.oracle.LikedBy(ctx, o.user, like.Fact{}, ledger.MaxPage)
		m.served("LikedBy", sorted(page.Facts), sorted(list), err)
	case opAmong:
		want, _ := m.oracle.LikersAmong(ctx, o.item, modelUsers)
		got, err := m.ledger.LikersAmong(ctx, o.item, modelUsers)
		m.served("LikersAmong", append([]like.User{}, want...), append([]like.User{}, got...), err)
	case opAudit:
		m.equal("Audit", m.truth(o.item), m.audit(o.item, o.n%2 == 0))
	case opAuditAll:
		m.equal("AuditAll", m.audits(m.oracle), m.audits(m.ledger))
	case opExport:
		m.equal("Export", sorted(m.exported(m.oracle)), sorted(m.exported(m.ledger)))
	}
}

func (m *model) served(what string, want, got any, err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("%s: %v", what, err)
	}
	m.equal(what, want, got)
}

// readTotals compares counts where they cannot lag, and versions always.
func (m *model) readTotals() {
	m.Helper()
	want, _ := m.oracle.Totals(m.Context(), modelItems)
	got, err := m.ledger.Totals(m.Context(), modelItems)
	if err != nil || len(got) != len(modelItems) {
		m.Fatalf("Totals = %+v, %v", got, err)
	}
	for k := range got {
		m.sawTotal(got[k])
		if got[k].Item != want[k].Item || m.h.Settle == 0 && got[k].Count != want[k].Count {
			m.Fatalf("Totals has %+v, the oracle %+v", got[k], want[k])
		}
	}
}

// concurrent lets users act at once, each on their own pairs and all on a few
// shared ones, and compares at rest: facts are what was acknowledged last.
func concurrent(r *run, seed uint64) {
	const workers, steps = 8, 120
	shared := []like.User{"shared-1", "shared-2"}
	users := append(usersN(0, workers), shared...)
	last := make([]map[like.Item]like.State, workers)
	for w := range last {
		last[w] = map[like.Item]like.State{}
	}
	for round := range 2 {
		feed := r.watch()
		r.together(workers, func(w int) {
			rng := rand.New(rand.NewPCG(seed, uint64(round*workers+w)))
			for range steps {
				if !r.act(rng, userN(w), shared, last[w]) {
					return
				}
			}
		})
		liked := map[pair]like.State{}
		for _, f := range r.agree(users, modelItems) {
			liked[pair{f.Item, f.User}] = like.State{Liked: true, Since: f.Since}
		}
		for w := range workers {
			for _, item := range modelItems {
				if got := liked[pair{item, userN(w)}]; got != last[w][item] {
					r.Errorf("%v by %q is %+v, last acknowledged as %+v", item, userN(w), got, last[w][item])
				}
			}
		}
		for _, item := range modelItems {
			feed.shows(r, r.total(item))
		}
		feed.stop()
		if r.h.Reopen != nil {
			r.reopen()
		}
	}
}

// act is one random step of one user, and reports whether it was acknowledged and
// seen at once.
func (r *run) act(rng *rand.Rand, me like.User, shared []like.User, last map[like.Item]like.State) bool {
	cmds := commands(rng, 1+rng.IntN(3))
	for k := range cmds {
		cmds[k].User = me
	}
	switch rng.IntN(8) {
	case 0: // fight over a shared pair
		cmds = cmds[:1]
		cmds[0].User = shared[rng.IntN(len(shared))]
		_, ok := r.try(cmds[0])
		return ok
	case 1:
		if _, err := r.ledger.EraseUser(r.Context(), me); err != nil {
			r.Errorf("EraseUser(%q): %v", me, err)
			return false
		}
		clear(last)
	default:
		acks, err := r.ledger.ApplyMany(r.Context(), cmds)
		if err != nil {
			r.Errorf("ApplyMany by %q: %v", me, err)
			return false
		}
		for k, c := range cmds {
			last[c.Item] = acks[k].State
		}
	}
	states, err := r.ledger.Liked(r.Context(), me, modelItems)
	if err != nil || len(states) != len(modelItems) {
		r.Errorf("Liked(%q): %v", me, err)
		return false
	}
	for k, item := range modelItems {
		if states[k] != last[item] {
			r.Errorf("%q reads %+v of %v, last acknowledged as %+v", me, states[k], item, last[item])
			return false
		}
	}
	return true
}

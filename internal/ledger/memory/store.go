package memory

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// pair names what at most one fact exists of.
type pair struct {
	item like.Item
	user like.User
}

// change is one accepted ±1 that its total has not moved by yet.
type change struct {
	pair
	delta int64
	due   time.Time
}

// store is everything a ledger holds. Facts are the truth; lists and totals are
// kept beside them on every change and never derived when read, so that an audit
// has something to compare.
type store struct {
	facts   map[like.Item]map[like.User]like.Stamp
	likers  map[like.Item][]like.Fact // ascending by byUser
	likedBy map[like.User][]like.Fact // ascending by byItem
	totals  map[like.Item]like.Total  // Count may be below 0 while changes are pending
	pending []*change                 // ascending by due
	own     map[pair]int64            // sum of each pair's pending changes, unless 0
	rand    *rand.Rand
	last    like.Stamp // the newest stamp handed out
}

func newStore(r *rand.Rand) *store {
	return &store{
		facts:   map[like.Item]map[like.User]like.Stamp{},
		likers:  map[like.Item][]like.Fact{},
		likedBy: map[like.User][]like.Fact{},
		totals:  map[like.Item]like.Total{},
		own:     map[pair]int64{},
		rand:    r,
	}
}

// byUser orders the list of one item; pages read it backwards.
func byUser(a, b like.Fact) int {
	return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.User, b.User))
}

// byItem orders the list of one user; pages read it backwards.
func byItem(a, b like.Fact) int {
	return cmp.Or(cmp.Compare(a.Since, b.Since), compareItems(a.Item, b.Item))
}

func compareItems(a, b like.Item) int {
	return cmp.Or(cmp.Compare(a.Collection, b.Collection), cmp.Compare(a.ID, b.ID))
}

func (s *store) state(p pair) like.State {
	since, liked := s.facts[p.item][p.user]
	return like.State{Liked: liked, Since: since}
}

// set writes the fact of a pair and its entry in both lists.
func (s *store) set(p pair, before, after like.State) {
	if before.Liked {
		f := like.Fact{Item: p.item, User: p.user, Since: before.Since}
		delete(s.facts[p.item], p.user)
		s.likers[p.item] = remove(s.likers[p.item], f, byUser)
		s.likedBy[p.user] = remove(s.likedBy[p.user], f, byItem)
	}
	if after.Liked {
		f := like.Fact{Item: p.item, User: p.user, Since: after.Since}
		if s.facts[p.item] == nil {
			s.facts[p.item] = map[like.User]like.Stamp{}
		}
		s.facts[p.item][p.user] = after.Since
		s.likers[p.item] = insert(s.likers[p.item], f, byUser)
		s.likedBy[p.user] = insert(s.likedBy[p.user], f, byItem)
	}
}

func insert(list []like.Fact, f like.Fact, order func(a, b like.Fact) int) []like.Fact {
	at, found := slices.BinarySearchFunc(list, f, order)
	if found {
		return list
	}
	return slices.Insert(list, at, f)
}

func remove(list []like.Fact, f like.Fact, order func(a, b like.Fact) int) []like.Fact {
	at, found := slices.BinarySearchFunc(list, f, order)
	if !found {
		return list
	}
	return slices.Delete(list, at, at+1)
}

// page returns up to n facts before the position, newest first.
func page(list []like.Fact, after like.Fact, n int, order func(a, b like.Fact) int) ledger.Page {
	end := len(list)
	if after != (like.Fact{}) {
		end, _ = slices.BinarySearchFunc(list, after, order)
	}
	start := max(end-n, 0)
	facts := slices.Clone(list[start:end])
	slices.Reverse(facts)
	return ledger.Page{Facts: facts, More: start > 0}
}

// move changes a total and returns it as readers see it.
func (s *store) move(item like.Item, delta int64) like.Total {
	t := s.totals[item]
	s.totals[item] = like.Total{Item: item, Count: t.Count + delta, Version: t.Version + 1}
	return s.total(item)
}

// total returns a total as readers see it: a removal may have overtaken the like
// that it removes, so only here a count below 0 is shown as 0.
func (s *store) total(item like.Item) like.Total {
	t := s.totals[item]
	return like.Total{Item: item, Count: max(t.Count, 0), Version: t.Version}
}

// delay keeps a change until a moment between half of lag and lag from now.
func (s *store) delay(p pair, delta int64, now time.Time, lag time.Duration) {
	c := &change{pair: p, delta: delta, due: now.Add(lag - time.Duration(s.rand.Int64N(int64(lag)/2+1)))}
	at, _ := slices.BinarySearchFunc(s.pending, c, func(a, b *change) int { return a.due.Compare(b.due) })
	s.pending = slices.Insert(s.pending, at, c)
	s.await(p, delta)
}

// drain moves the total of every change that is due and returns those totals.
func (s *store) drain(now time.Time) []like.Total {
	var moved []like.Total
	for len(s.pending) > 0 && !s.pending[0].due.After(now) {
		c := s.pending[0]
		s.pending = s.pending[1:]
		s.await(c.pair, -c.delta)
		moved = append(moved, s.move(c.item, c.delta))
	}
	return moved
}

// await corrects the sum of a pair's pending changes.
func (s *store) await(p pair, delta int64) {
	s.own[p] += delta
	if s.own[p] == 0 {
		delete(s.own, p)
	}
}

// ack is the answer to the pair's newest command: the total, corrected by what of
// this pair it does not hold yet. A total that the removals of others overtook is
// no reason to tell a user who likes the item that nobody does.
func (s *store) ack(p pair) ledger.Ack {
	state, total := s.state(p), s.total(p.item)
	ack := ledger.Ack{State: state, Count: max(s.totals[p.item].Count+s.own[p], 0)}
	if state.Liked {
		ack.Count = max(ack.Count, 1)
	}
	if ack.Count == total.Count && s.own[p] == 0 {
		ack.Version = total.Version
	}
	return ack
}

package conformance

import (
	"slices"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// viewPage is the page size of walks over views: small and odd, so that pages end
// in the middle of everything.
const viewPage = 7

// agree checks at rest that every view shows the same facts: own states, both
// lists, membership, totals, audits and the export. The users and items given are
// all that the ledger knows. It returns the facts in no order that matters.
func (r *run) agree(users []like.User, items []like.Item) []like.Fact {
	r.Helper()
	r.settle()
	facts := r.ownStates(users, items)
	byItem := map[like.Item][]like.Fact{}
	byUser := map[like.User][]like.Fact{}
	for _, f := range facts {
		byItem[f.Item] = append(byItem[f.Item], f)
		byUser[f.User] = append(byUser[f.User], f)
	}
	for _, item := range items {
		r.agreeItem(item, users, byItem[item])
	}
	for _, user := range users {
		r.same("LikedBy", byUser[user], r.likedBy(user, viewPage))
	}
	var exported []like.Fact
	for f, err := range r.ledger.Export(r.Context()) {
		if err != nil {
			r.Fatalf("Export: %v", err)
		}
		exported = append(exported, f)
	}
	r.same("Export", facts, exported)
	return facts
}

// agreeItem compares every view of one item with its facts.
func (r *run) agreeItem(item like.Item, users []like.User, facts []like.Fact) {
	r.Helper()
	r.same("Likers", facts, r.likers(item, viewPage))
	var want []like.User
	for _, f := range facts {
		want = append(want, f.User)
	}
	var among []like.User
	for chunk := range slices.Chunk(users, ledger.MaxItems) {
		got, err := r.ledger.LikersAmong(r.Context(), item, chunk)
		if err != nil {
			r.Fatalf("LikersAmong(%v): %v", item, err)
		}
		among = append(among, got...)
	}
	slices.Sort(want)
	slices.Sort(among)
	if !slices.Equal(want, among) {
		r.Errorf("LikersAmong(%v) = %q, want %q", item, among, want)
	}
	r.totalIs(item, int64(len(facts)))
	a, err := r.ledger.Audit(r.Context(), item, false)
	if err != nil {
		r.Fatalf("Audit(%v): %v", item, err)
	}
	if n := int64(len(facts)); a != (ledger.Audit{Item: item, Facts: n, Total: n}) {
		r.Errorf("Audit(%v) = %+v, want %d facts and no drift", item, a, n)
	}
}

// ownStates asks every user about every item and returns the facts.
func (r *run) ownStates(users []like.User, items []like.Item) []like.Fact {
	r.Helper()
	var facts []like.Fact
	for _, user := range users {
		for chunk := range slices.Chunk(items, ledger.MaxItems) {
			states, err := r.ledger.Liked(r.Context(), user, chunk)
			if err != nil || len(states) != len(chunk) {
				r.Fatalf("Liked(%q) of %d items: %d states, %v", user, len(chunk), len(states), err)
			}
			for k, s := range states {
				if s.Liked {
					facts = append(facts, like.Fact{Item: chunk[k], User: user, Since: s.Since})
				}
			}
		}
	}
	return facts
}

// same compares two sets of facts.
func (r *run) same(what string, want, got []like.Fact) {
	r.Helper()
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		r.Errorf("%s differs from the users' own states (-states +%s):\n%s", what, what, diff)
	}
}

package conformance

import (
	"fmt"
	"slices"
	"strings"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// checkR8: counts and page sizes beyond the bounds, and invalid names, are
// like.ErrInvalid; the bounds themselves are served.
func checkR8(r *run) {
	for _, user := range invalidUsers() {
		_, err := r.ledger.Liked(r.Context(), user, []like.Item{post("1")})
		r.invalid(err, "Liked by %.40q", string(user))
		_, err = r.ledger.LikedBy(r.Context(), user, like.Fact{}, 1)
		r.invalid(err, "LikedBy %.40q", string(user))
		_, err = r.ledger.LikersAmong(r.Context(), post("1"), []like.User{"u", user})
		r.invalid(err, "LikersAmong %.40q", string(user))
		_, err = r.ledger.EraseUser(r.Context(), user)
		r.invalid(err, "EraseUser %.40q", string(user))
	}
	for _, item := range invalidItems() {
		_, err := r.ledger.Liked(r.Context(), "u", []like.Item{post("1"), item})
		r.invalid(err, "Liked of %.40q", item.String())
		_, err = r.ledger.Totals(r.Context(), []like.Item{post("1"), item})
		r.invalid(err, "Totals of %.40q", item.String())
		_, err = r.ledger.Likers(r.Context(), item, like.Fact{}, 1)
		r.invalid(err, "Likers of %.40q", item.String())
		_, err = r.ledger.LikersAmong(r.Context(), item, []like.User{"u"})
		r.invalid(err, "LikersAmong of %.40q", item.String())
		_, err = r.ledger.Audit(r.Context(), item, false)
		r.invalid(err, "Audit of %.40q", item.String())
		_, err = r.ledger.RemoveItem(r.Context(), item)
		r.invalid(err, "RemoveItem of %.40q", item.String())
	}
	r.pageBounds()
	r.countBounds()
}

// pageBounds asks for pages at and beyond the bounds.
func (r *run) pageBounds() {
	r.Helper()
	r.like("u", post("1"))
	for _, n := range []int{-1, 0, ledger.MaxPage + 1, 1 << 40} {
		_, err := r.ledger.Likers(r.Context(), post("1"), like.Fact{}, n)
		r.invalid(err, "Likers with a page of %d", n)
		_, err = r.ledger.LikedBy(r.Context(), "u", like.Fact{}, n)
		r.invalid(err, "LikedBy with a page of %d", n)
	}
	for _, n := range []int{1, ledger.MaxPage} {
		a, err := r.ledger.Likers(r.Context(), post("1"), like.Fact{}, n)
		if err != nil || len(a.Facts) != 1 {
			r.Errorf("Likers with a page of %d: %+v, %v", n, a, err)
		}
		b, err := r.ledger.LikedBy(r.Context(), "u", like.Fact{}, n)
		if err != nil || len(b.Facts) != 1 {
			r.Errorf("LikedBy with a page of %d: %+v, %v", n, b, err)
		}
	}
}

// countBounds asks for as many items and users as allowed, and for one more.
func (r *run) countBounds() {
	r.Helper()
	items := make([]like.Item, ledger.MaxItems+1)
	for k := range items {
		items[k] = postN(k)
	}
	users := usersN(0, len(items))
	_, err := r.ledger.Liked(r.Context(), "u", items)
	r.invalid(err, "Liked of %d items", len(items))
	_, err = r.ledger.Totals(r.Context(), items)
	r.invalid(err, "Totals of %d items", len(items))
	_, err = r.ledger.LikersAmong(r.Context(), post("1"), users)
	r.invalid(err, "LikersAmong %d users", len(users))

	states, err := r.ledger.Liked(r.Context(), "u", items[1:])
	if err != nil || len(states) != ledger.MaxItems {
		r.Errorf("Liked of %d items: %d states, %v", ledger.MaxItems, len(states), err)
	}
	totals, err := r.ledger.Totals(r.Context(), items[1:])
	if err != nil || len(totals) != ledger.MaxItems {
		r.Errorf("Totals of %d items: %d totals, %v", ledger.MaxItems, len(totals), err)
	}
	if _, err := r.ledger.LikersAmong(r.Context(), post("1"), users[1:]); err != nil {
		r.Errorf("LikersAmong %d users: %v", ledger.MaxItems, err)
	}
}

// lookAlikes are names that a careless key, number, collation or separator takes
// for one another.
func lookAlikes() []string {
	names := []string{
		"0", "00", "1", "01", "001", "+1", "-1", "1 ", " 1", "1.0", "1e0", "0x1", "१", "１", "10", "1_0",
		"9007199254740992", "9007199254740993",
		"9223372036854775807", "9223372036854775808",
		"18446744073709551615", "18446744073709551616", "018446744073709551615", "99999999999999999999",
		"0189f7ea-ae2c-7b5c-8d1e-0a1b2c3d4e5f", "0189F7EA-AE2C-7B5C-8D1E-0A1B2C3D4E5F",
		"0189f7eaae2c7b5c8d1e0a1b2c3d4e5f", "{0189f7ea-ae2c-7b5c-8d1e-0a1b2c3d4e5f}",
		"0189f7ea-ae2c-7b5c-8d1e-0a1b2c3d4e5F", "00000000-0000-0000-0000-000000000000",
		"a", "A", "á", "a\u0301", "ａ", "ß", "ss", "İ", "i", "ı", "a ", "a\u00a0", "a\u200b",
		"...", "/", "a/b", "a%2Fb", "\ufffd", "\U0010ffff", "posts", "posts/1", "8bytes--", "sixteen-bytes---",
	}
	for _, sep := range []string{":", "|", ",", "#", "{", "}", ";", "~", " ", "/", "\\", "'", "\"", "%", "_", "*", "?"} {
		names = append(names, sep, "a"+sep+"b", "b"+sep+"c", "a"+sep+"b"+sep+"c", sep+sep)
	}
	longest := strings.Repeat("1", like.MaxIDBytes)
	return append(names, longest, longest[1:], longest[1:]+"2")
}

// checkR9: names that differ in one byte are different, in every key and list.
func checkR9(r *run) {
	names := lookAlikes()
	slices.Sort(names)
	names = slices.Compact(names)
	var users []like.User
	var items []like.Item
	for _, name := range names {
		users = append(users, like.User(name))
		items = append(items, post(name))
	}
	items = append(items, like.Item{Collection: "p", ID: "osts/1"}, like.Item{Collection: "post", ID: "s1"},
		like.Item{Collection: "posts1", ID: "1"}, like.Item{Collection: "posts-", ID: "1"}, like.Item{Collection: "posts_", ID: "1"})
	liked := func(u, i int) bool { return (u*31+i*17)%7 == 0 || u == i }
	var cmds []like.Command
	want := map[like.Fact]bool{}
	for u, user := range users {
		for i, item := range items {
			if liked(u, i) {
				cmds = append(cmds, like.Command{Item: item, User: user, Op: like.OpLike})
				want[like.Fact{Item: item, User: user}] = true
			}
		}
	}
	r.applyAll(cmds)
	for _, f := range r.agree(users, items) {
		f.Since = 0
		if !want[f] {
			r.Errorf("%q likes %q without ever having said so", f.User, f.Item)
		}
		delete(want, f)
	}
	for f := range want {
		r.Errorf("the like of %q by %q went to another name", f.Item, f.User)
	}
	r.joined()
	r.prefixes()
}

// joined likes and unlikes pairs whose joined keys are the same, separator by
// separator: user "a:b" with item "c", and user "a" with item "b:c".
func (r *run) joined() {
	r.Helper()
	type twins struct {
		long, short like.User
		c, bc       like.Item
	}
	var all []twins
	for k, sep := range []string{":", "|", ",", "#", "{", "}", ";", "~", " ", "/"} {
		a, c := fmt.Sprintf("a%d", k), fmt.Sprintf("c%d", k)
		all = append(all, twins{like.User(a + sep + "b"), like.User(a), post(c), post("b" + sep + c)})
	}
	step := func(do func(twins), longLikes, shortLikes bool, c, bc int64) {
		r.Helper()
		for _, tw := range all {
			do(tw)
		}
		r.settle()
		for _, tw := range all {
			r.totalIs(tw.c, c)
			r.totalIs(tw.bc, bc)
			if got := r.state(tw.long, tw.c).Liked; got != longLikes {
				r.Errorf("%q likes %v: %v", tw.long, tw.c, got)
			}
			if got := r.state(tw.short, tw.bc).Liked; got != shortLikes {
				r.Errorf("%q likes %v: %v", tw.short, tw.bc, got)
			}
		}
	}
	step(func(tw twins) { r.like(tw.long, tw.c) }, true, false, 1, 0)
	step(func(tw twins) { r.like(tw.short, tw.bc) }, true, true, 1, 1)
	step(func(tw twins) { r.unlike(tw.long, tw.c) }, false, true, 0, 1)
	step(func(tw twins) { r.unlike(tw.short, tw.bc) }, false, false, 0, 0)
}

// prefixes likes names of which one continues the other, so that a list scanned by
// prefix would run into its neighbour's.
func (r *run) prefixes() {
	r.Helper()
	for n := range 5 {
		id := "prefix" + strings.Repeat("0", n)
		r.likeAll(usersN(n*10, n*10+n+1), post(id))
	}
	for n := range 5 {
		id := "prefix" + strings.Repeat("0", n)
		if got := len(r.likers(post(id), 2)); got != n+1 {
			r.Errorf("%s has %d likers, want %d", fmt.Sprintf("posts/%s", id), got, n+1)
		}
	}
}

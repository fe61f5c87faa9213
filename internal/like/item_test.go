package like_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"likewise/internal/like"
)

// verdict reports a wrong answer of a Validate method.
func verdict(t *testing.T, what string, err error, valid bool) {
	t.Helper()
	if valid && err != nil {
		t.Errorf("%s: %v, want it accepted", what, err)
	}
	if !valid && !errors.Is(err, like.ErrInvalid) {
		t.Errorf("%s: %v, want ErrInvalid", what, err)
	}
}

func TestCollection(t *testing.T) {
	tests := []struct {
		name  string
		valid bool
	}{
		{"p", true},
		{"posts", true},
		{"posts2", true},
		{"blog-posts", true},
		{"blog_posts", true},
		{"a-", true},
		{"a_", true},
		{"z9", true},
		{strings.Repeat("c", like.MaxCollectionBytes), true},
		{strings.Repeat("c", like.MaxCollectionBytes+1), false},
		{"", false},
		{"Posts", false},
		{"pOsts", false},
		{"9posts", false},
		{"-posts", false},
		{"_posts", false},
		{"po sts", false},
		{"po/sts", false},
		{"po.sts", false},
		{"po:sts", false},
		{"posts\n", false},
		{"posts\x00", false},
		{"pösts", false},
		{"\xff", false},
		{"po`sts", false},
		{"po{sts", false},
	}
	for _, tt := range tests {
		verdict(t, tt.name, like.ValidateCollection(tt.name), tt.valid)
		verdict(t, tt.name, like.Item{Collection: tt.name, ID: "1"}.Validate(), tt.valid)
	}
}

func TestIDsAndUsers(t *testing.T) {
	tests := []struct {
		text        string
		valid, user bool // as an id; as a user
	}{
		{"1", true, true},
		{"42", true, true},
		{"a:b", true, true},
		{"a/b", true, true},
		{" ", true, true},
		{"?", true, true},
		{"...", true, true},
		{".a", true, true},
		{"ü", true, true},
		{"日本", true, true},
		{"👍", true, true},
		{"\ufffd", true, true},
		{"\u200b", true, true},
		{"\u2028", true, true},
		{"18446744073709551616", true, true},
		{strings.Repeat("i", like.MaxIDBytes), true, true},
		{strings.Repeat("i", like.MaxIDBytes-1) + "ü", false, false}, // bytes, not characters
		{strings.Repeat("i", like.MaxIDBytes+1), false, false},
		{".", false, true},
		{"..", false, true}, // only ids stand in a path
		{"", false, false},
		{"\x00", false, false},
		{"a\nb", false, false},
		{"a\r", false, false},
		{"\t", false, false},
		{"\x1b", false, false},
		{"\x7f", false, false},
		{"\u0080", false, false},
		{"\u009f", false, false},
		{"\xff", false, false},
		{"a\xc3", false, false},
		{"\xed\xa0\x80", false, false},
		{"\xc0\xaf", false, false},
	}
	for _, tt := range tests {
		verdict(t, "id "+tt.text, like.Item{Collection: "posts", ID: tt.text}.Validate(), tt.valid)
		verdict(t, "user "+tt.text, like.User(tt.text).Validate(), tt.user)
	}
	if like.MaxUserBytes != like.MaxIDBytes {
		t.Error("the table takes ids and users for equally long")
	}
}

func TestItemString(t *testing.T) {
	if got := (like.Item{Collection: "posts", ID: "a/b"}).String(); got != "posts/a/b" {
		t.Errorf("String() = %q", got)
	}
}

// FuzzItem demands that whatever is accepted keeps to the limits, and survives a
// cursor.
func FuzzItem(f *testing.F) {
	for _, seed := range []struct{ collection, id, user string }{
		{"posts", "42", "u1"}, {"p", "..", "a\x00"}, {"P", "\xff", ""}, {"games", "a:b", "日本"}, {"posts", "a/b\n", "\u0085"},
	} {
		f.Add(seed.collection, seed.id, seed.user)
	}
	f.Fuzz(func(t *testing.T, collection, id, user string) {
		item := like.Item{Collection: collection, ID: id}
		if item.Validate() != nil || like.User(user).Validate() != nil {
			return
		}
		for _, s := range []string{id, user} {
			if len(s) == 0 || len(s) > 128 || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
				t.Fatalf("%q is accepted", s)
			}
		}
		if len(collection) > like.MaxCollectionBytes || strings.Trim(collection, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			t.Fatalf("collection %q is accepted", collection)
		}
		c := newCursors(t, "fuzz")
		want := like.Fact{Item: item, User: like.User(user), Since: 7}
		if got, err := c.OpenLiker(item, c.SealLiker(want)); err != nil || got != want {
			t.Fatalf("liker cursor of %+v opens as %+v, %v", want, got, err)
		}
		if got, err := c.OpenLiked(want.User, c.SealLiked(want)); err != nil || got != want {
			t.Fatalf("liked cursor of %+v opens as %+v, %v", want, got, err)
		}
	})
}

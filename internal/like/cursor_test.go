package like_test

import (
	"encoding/base64"
	"math"
	"net/url"
	"strings"
	"testing"

	"likewise/internal/like"
)

// newCursors returns a codec with a key made from a word.
func newCursors(t *testing.T, word string) *like.Cursors {
	t.Helper()
	c, err := like.NewCursors([]byte(strings.Repeat(word, 32)[:32]))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var (
	first  = like.Item{Collection: "posts", ID: "1"}
	second = like.Item{Collection: "posts", ID: "2"}
	sample = like.Fact{Item: first, User: "u10", Since: 1_795_994_387_857_180}
)

func TestCursorRoundTrip(t *testing.T) {
	c := newCursors(t, "key")
	longest := like.Fact{
		Item:  like.Item{Collection: strings.Repeat("c", like.MaxCollectionBytes), ID: strings.Repeat("i", like.MaxIDBytes)},
		User:  like.User(strings.Repeat("u", like.MaxUserBytes)),
		Since: math.MaxInt64,
	}
	for _, f := range []like.Fact{
		sample, longest,
		{Item: like.Item{Collection: "a", ID: "b"}, User: "c", Since: 1},
		{Item: like.Item{Collection: "ab", ID: "a\x7fb:/ü"}, User: "a:b", Since: -5},
	} {
		liker, liked := c.SealLiker(f), c.SealLiked(f)
		if got, err := c.OpenLiker(f.Item, liker); err != nil || got != f {
			t.Errorf("liker cursor of %+v opens as %+v, %v", f, got, err)
		}
		if got, err := c.OpenLiked(f.User, liked); err != nil || got != f {
			t.Errorf("liked cursor of %+v opens as %+v, %v", f, got, err)
		}
		for _, text := range []string{liker, liked} {
			if len(text) > like.MaxCursorBytes || text != url.QueryEscape(text) {
				t.Errorf("cursor of %d bytes is too long or does not fit a query: %q", len(text), text)
			}
		}
		if again := c.SealLiker(f); again != liker {
			t.Errorf("the same position is sealed as %q and %q", liker, again)
		}
	}
}

func TestCursorTampering(t *testing.T) {
	c := newCursors(t, "key")
	good := c.SealLiker(sample)
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{
		"empty": "", "extra character": good + "!", "extra valid character": good + "A", "padded": good + "=",
		"upper case": strings.ToUpper(good), "4 KiB": strings.Repeat("Ab3_", 1024), "escaped twice": url.QueryEscape("%" + good),
		"line break at the end": good + "\n", "line break inside": good[:9] + "\r\n" + good[9:], "space": " " + good,
		"another item's": c.SealLiker(like.Fact{Item: second, User: sample.User, Since: sample.Since}),
		"another list's": c.SealLiked(sample), "another key's": newCursors(t, "other").SealLiker(sample),
		"standard alphabet": base64.StdEncoding.EncodeToString(raw), "twice": good + good, "one byte": "AQ",
		"one byte over the limit": strings.Repeat("A", like.MaxCursorBytes+1),
	}
	for n := 1; n <= 5; n++ {
		bad["cut at the end by "+string(rune('0'+n))] = good[:len(good)-n]
		bad["cut at the front by "+string(rune('0'+n))] = good[n:]
	}
	for name, text := range bad {
		_, err := c.OpenLiker(first, text)
		verdict(t, name, err, false)
	}
	for at := range good { // every character changed, to every other of the alphabet
		for _, ch := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
			if text := good[:at] + string(ch) + good[at+1:]; text != good {
				if _, err := c.OpenLiker(first, text); err == nil {
					t.Fatalf("character %d changed to %c is accepted", at, ch)
				}
			}
		}
	}
	if got, err := c.OpenLiker(first, good); err != nil || got != sample {
		t.Errorf("the cursor itself opens as %+v, %v", got, err)
	}
}

// TestCursorBinding opens cursors on owners whose joined names are the same.
func TestCursorBinding(t *testing.T) {
	c := newCursors(t, "key")
	liker := c.SealLiker(like.Fact{Item: like.Item{Collection: "ab", ID: "cd"}, User: "e", Since: 1})
	for _, item := range []like.Item{
		{Collection: "abc", ID: "d"},
		{Collection: "a", ID: "bcd"},
		{Collection: "ab", ID: "cD"},
		{Collection: "ab", ID: "c"},
		{Collection: "ab", ID: "cde"},
		{},
	} {
		_, err := c.OpenLiker(item, liker)
		verdict(t, "liker cursor on "+item.String(), err, false)
	}
	_, err := c.OpenLiked("e", liker)
	verdict(t, "liker cursor on a user", err, false)

	liked := c.SealLiked(like.Fact{Item: first, User: "me", Since: 1})
	for _, user := range []like.User{"m", "mee", "Me", "", "me\x00"} {
		_, err := c.OpenLiked(user, liked)
		verdict(t, "liked cursor of another user", err, false)
	}
	_, err = c.OpenLiker(first, liked)
	verdict(t, "liked cursor on an item", err, false)
}

func TestCursorKey(t *testing.T) {
	for n, valid := range map[int]bool{0: false, 31: false, 32: true, 64: true} {
		_, err := like.NewCursors(make([]byte, n))
		verdict(t, "key", err, valid)
	}
}

// FuzzCursor demands that text which opens is exactly what was sealed.
func FuzzCursor(f *testing.F) {
	c, err := like.NewCursors(make([]byte, 32))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.SealLiker(sample))
	f.Add(c.SealLiked(sample))
	f.Add("")
	f.Add("AQ\n")
	f.Add(strings.Repeat("A", 300))
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := c.OpenLiker(first, text); err == nil && c.SealLiker(got) != text {
			t.Fatalf("%q opens as %+v, which is sealed as %q", text, got, c.SealLiker(got))
		}
		if got, err := c.OpenLiked("u10", text); err == nil && c.SealLiked(got) != text {
			t.Fatalf("%q opens as %+v, which is sealed as %q", text, got, c.SealLiked(got))
		}
	})
}

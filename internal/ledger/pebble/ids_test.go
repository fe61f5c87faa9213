package pebble

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/like"
)

// names are ids whose stored forms are at the edges of one.
var names = []string{
	"0", "1", "9", "10", "255", "256", "65535", "65536", "4294967295", "4294967296",
	"18446744073709551615", "18446744073709551616", "99999999999999999999", "184467440737095516150",
	"00", "01", "007", "+1", "-1", "1.0", "1e3", " 1", "1 ", "٣",
	"c2a7e9a0-0000-4000-8000-000000000001", "C2A7E9A0-0000-4000-8000-000000000001",
	"c2a7e9a000004000800000000000000001", "c2a7e9a0-0000-4000-8000-00000000000", "c2a7e9a0-0000-4000-8000-0000000000011",
	"c2a7e9a0-0000-4000-8000-00000000000g", "c2a7e9a0-0000-4000-8000-0000000000-1", "--------------------------------------",
	"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
	"a", "b", "aa", "ab", "\x80", "\x01\x01", "user:1", "user", ":1", strings.Repeat("x", 127), strings.Repeat("x", 128),
	strings.Repeat("9", 128),
}

// TestNamesRoundTrip reads each name back, and finds no stored form at the front of
// another: names cannot run into each other in a key.
func TestNamesRoundTrip(t *testing.T) {
	for _, s := range names {
		stored := appendID(nil, s)
		got, rest, err := cutID(append(slices.Clone(stored), "rest"...))
		if got != s || string(rest) != "rest" || err != nil {
			t.Errorf("%q is stored as %x and read as %q, %q, %v", s, stored, got, rest, err)
		}
		for _, other := range names {
			if s != other && bytes.HasPrefix(appendID(nil, other), stored) {
				t.Errorf("the stored form of %q begins that of %q", s, other)
			}
		}
	}
}

func TestNamesAreShort(t *testing.T) {
	for s, want := range map[string]int{
		"0": 2, "255": 2, "256": 3, "18446744073709551615": 9, "18446744073709551616": 21,
		"c2a7e9a0-0000-4000-8000-000000000001": 17, "C2A7E9A0-0000-4000-8000-000000000001": 37, "a": 2,
	} {
		if got := len(appendID(nil, s)); got != want {
			t.Errorf("%q takes %d bytes, want %d", s, got, want)
		}
	}
}

func TestDamagedNames(t *testing.T) {
	for _, b := range []string{"", "\x00", "\x00a", "\x01", "\x09123456789", "\x0f", "\x10short", "\x11", "\x7f", "\x80", "\xffshort"} {
		if got, _, err := cutID([]byte(b)); !errors.Is(err, like.ErrCorrupt) {
			t.Errorf("%x is read as %q, %v; want corrupt", b, got, err)
		}
	}
}

// FuzzID reads any name back, and compares the stored forms of two names.
func FuzzID(f *testing.F) {
	for i, s := range names {
		f.Add(s, names[(i+1)%len(names)])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if like.User(a).Validate() != nil || like.User(b).Validate() != nil {
			return // nothing is stored under such a name
		}
		sa, sb := appendID(nil, a), appendID(nil, b)
		if got, rest, err := cutID(sa); got != a || len(rest) != 0 || err != nil {
			t.Errorf("%q is stored as %x and read as %q, %x, %v", a, sa, got, rest, err)
		}
		if a != b && (bytes.HasPrefix(sa, sb) || bytes.HasPrefix(sb, sa)) {
			t.Errorf("%q is stored as %x, %q as %x: one begins the other", a, sa, b, sb)
		}
	})
}

// FuzzKeys reads anything as a key: it is refused, or written back as it was.
func FuzzKeys(f *testing.F) {
	item := like.Item{Collection: "posts", ID: "42"}
	f.Add(factKey(nil, "ann", item), sinceValue(7))
	f.Add(listKey(nil, appendItem(nil, item), 7, appendID(nil, "ann")), []byte(nil))
	f.Add(totalKey(item), appendTotal(nil, 1, 7))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if len(key) == 0 {
			t.Skip()
		}
		if got, err := parseFact(key, value); err == nil && len(key) == len(factKey(nil, got.User, got.Item)) {
			if want := factKey([]byte{}, got.User, got.Item); !bytes.Equal(key[1:], want[1:]) {
				t.Errorf("fact %x is read as %+v, which is %x", key, got, want)
			}
		}
		_, _ = parseList(key)
		_, _, _ = parseTotal(value)
	})
}

// randomName is often a number or a UUID, in every length.
func randomName(r *rand.Rand) string {
	switch r.IntN(4) {
	case 0:
		return string(appendDigits(nil, r.Uint64()>>r.IntN(64)))
	case 1:
		u := make([]byte, 16)
		for i := range u {
			u[i] = byte(r.Uint32())
		}
		return formatUUID(u)
	}
	return names[r.IntN(len(names))]
}

func appendDigits(dst []byte, n uint64) []byte {
	if n >= 10 {
		dst = appendDigits(dst, n/10)
	}
	return append(dst, byte('0'+n%10))
}

// TestKeysRoundTrip reads keys of random facts back, and checks that prefixes bound
// exactly the keys of one user or item, and that lists are newest first.
func TestKeysRoundTrip(t *testing.T) {
	r := newRand(drillSeed(t))
	fact := func() like.Fact {
		return like.Fact{
			Item:  like.Item{Collection: []string{"p", "posts", "posts-a"}[r.IntN(3)], ID: randomName(r)},
			User:  like.User(randomName(r)),
			Since: like.Stamp(r.Int64() >> r.IntN(63)),
		}
	}
	for range 5000 {
		a, b := fact(), fact()
		if got, err := parseFact(factKey(nil, a.User, a.Item), sinceValue(a.Since)); err != nil || got != a {
			t.Fatalf("fact %+v is read as %+v, %v", a, got, err)
		}
		row := func(f like.Fact) []byte {
			return listKey(nil, appendItem(nil, f.Item), f.Since, appendID(nil, string(f.User)))
		}
		if got, err := parseList(row(a)); err != nil || got != a {
			t.Fatalf("list entry %+v is read as %+v, %v", a, got, err)
		}
		within := func(key, prefix []byte) bool {
			return bytes.Compare(key, prefix) >= 0 && bytes.Compare(key, prefixEnd(prefix)) < 0
		}
		if within(factKey(nil, a.User, a.Item), userPrefix(b.User)) != (a.User == b.User) {
			t.Fatalf("the facts of %q and %q mix", a.User, b.User)
		}
		if within(row(a), listPrefix(b.Item)) != (a.Item == b.Item) {
			t.Fatalf("the lists of %v and %v mix", a.Item, b.Item)
		}
		b.Item = a.Item
		if c := bytes.Compare(row(a), row(b)); a.Since != b.Since && (c < 0) != (a.Since > b.Since) {
			t.Fatalf("%+v and %+v are not newest first", a, b)
		}
	}
}

func TestTotalsRoundTrip(t *testing.T) {
	for _, count := range []int64{0, 1, 127, 128, 1 << 40, -1} {
		for _, version := range []uint64{0, 1, 1 << 50, 1<<64 - 1} {
			value := appendTotal(nil, count, version)
			if c, v, err := parseTotal(value); c != count || v != version || err != nil {
				t.Errorf("%d, %d is read as %d, %d, %v", count, version, c, v, err)
			}
			for _, bad := range [][]byte{nil, value[:len(value)-1], append(slices.Clone(value), 0)} {
				if _, _, err := parseTotal(bad); !errors.Is(err, like.ErrCorrupt) {
					t.Errorf("%x: %v, want corrupt", bad, err)
				}
			}
		}
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string][]byte{"a": []byte("b"), "a\xff": []byte("b"), "\xff\xff": nil, "": nil} {
		if d := cmp.Diff(want, prefixEnd([]byte(prefix))); d != "" {
			t.Errorf("prefixEnd(%x) (-want +got):\n%s", prefix, d)
		}
	}
}

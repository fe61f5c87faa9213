package redis

import (
	"math"
	"testing"

	"likewise/internal/like"
)

func TestTotalValue(t *testing.T) {
	for _, want := range []like.Total{
		{Count: 0, Version: 0},
		{Count: 1, Version: 1},
		{Count: 0, Version: 7},
		{Count: 42, Version: 1 << 53},
		{Count: math.MaxInt64, Version: math.MaxUint64},
	} {
		text := formatTotal(want)
		if got, ok := parseTotal(want.Item, text); !ok || got != want {
			t.Errorf("%+v is written as %q and read as %+v, %v", want, text, got, ok)
		}
	}
	if a, b := formatTotal(total(1, 999, 9)), formatTotal(total(1, 1, 10)); a >= b {
		t.Errorf("version 9 as %q is not below version 10 as %q", a, b)
	}
}

func TestValueThatDoesNotParse(t *testing.T) {
	for _, text := range []string{
		"", ".", "1.1", "00000000000000000001", "00000000000000000001.", "00000000000000000001.-1", "00000000000000000001.+1",
		"00000000000000000001.01", "00000000000000000001.1 ", "00000000000000000001.1\n", "00000000000000000001.1.1",
		" 0000000000000000001.1", "+0000000000000000001.1", "0x000000000000000001.1", "000000000000000000001.1",
		"00000000000000000001.9223372036854775808", "18446744073709551616.1", "00000000000000000000.1", "00000000000000000001.1e3",
	} {
		if got, ok := parseTotal(post(1), text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func FuzzTotalValue(f *testing.F) {
	f.Add("00000000000000000001.1")
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseTotal(post(1), text)
		if ok && (formatTotal(got) != text || got.Count < 0) {
			t.Errorf("%q is read as %+v, which is written as %q", text, got, formatTotal(got))
		}
	})
}

// TestKeysOfDifferentItemsDiffer tries items that are cut in different places.
func TestKeysOfDifferentItemsDiffer(t *testing.T) {
	c := &Client{cfg: DefaultConfig()}
	keys := map[string]like.Item{}
	for _, item := range []like.Item{
		{Collection: "a", ID: "b"},
		{Collection: "ab", ID: ""},
		{Collection: "", ID: "ab"},
		{Collection: "a", ID: "B"},
		{Collection: "a", ID: "b "},
		{Collection: "a", ID: "{b}"},
		{Collection: "1", ID: ":ab"},
		{Collection: "1:a", ID: "b"},
		{Collection: "aaaaaaaaaaa", ID: "b"},
		{Collection: "a", ID: "aaaaaaaaaab"},
		{Collection: "a", ID: "é"},
		{Collection: "a", ID: "e\u0301"},
	} {
		key := c.totalKey(item)
		if other, taken := keys[key]; taken {
			t.Errorf("%q and %q have the key %q", item, other, key)
		}
		keys[key] = item
	}
}

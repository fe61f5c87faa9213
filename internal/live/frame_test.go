package live

import (
	"encoding/json"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"

	"likewise/internal/like"
)

// TestEncoding compares what is appended by hand with encoding/json.
func TestEncoding(t *testing.T) {
	type element struct {
		Collection string `json:"collection"`
		ID         string `json:"id"`
		Count      int64  `json:"count"`
		Display    string `json:"display"`
		Version    string `json:"version"`
	}
	var encoded [][]byte
	var all []element
	for _, total := range []like.Total{
		{Item: post("1"), Count: 999_950, Version: math.MaxUint64},
		{Item: like.Item{Collection: "games", ID: `"\/` + "\u2028é\x7f<&>"}, Count: math.MaxInt64},
		{Item: post("a:b,c d")},
	} {
		encoded = append(encoded, appendTotal(nil, total))
		all = append(all, element{
			total.Item.Collection, total.Item.ID, total.Count, like.Display(total.Count), strconv.FormatUint(total.Version, 10),
		})
	}
	text := appendMessage(nil, encoded)
	var got struct {
		Type   string
		Counts []element
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Type != "counts" {
		t.Fatalf("%s: %v", text, err)
	}
	for i, want := range all {
		if got.Counts[i] != want {
			t.Errorf("%s became %+v, want %+v", encoded[i], got.Counts[i], want)
		}
	}
	if strings.ContainsAny(string(text), "\n\r") {
		t.Errorf("a line break in %q", text)
	}
}

func FuzzLastEventID(f *testing.F) {
	h, err := New(DefaultConfig(), newSource(), slog.New(slog.DiscardHandler), nil)
	if err != nil {
		f.Fatal(err)
	}
	h.epoch = "ABCDEFGHIJ"
	for _, seed := range []string{"", "ABCDEFGHIJ-1-1", "ABCDEFGHIJ-zz-zz", "ABCDEFGHIJ--1-1", "abcdefghij-1-1", "ABCDEFGHIJ-1-1-1", "ABCDEFGHIJ-3w5e11264sgsf-3w5e11264sgsf"} {
		f.Add(seed, uint64(1))
	}
	f.Fuzz(func(t *testing.T, id string, set uint64) {
		if seq := h.resumePoint(id, set); seq != 0 && string(h.appendID(nil, set, seq)) != id {
			t.Errorf("%q is taken for %d of set %d", id, seq, set)
		}
		// Whatever it is, the same id of another hub or set means nothing.
		if seq := h.resumePoint(id, set); seq != 0 && h.resumePoint(id, set+1) != 0 {
			t.Errorf("%q is taken for two sets", id)
		}
		if seq := uint64(len(id)) + set; seq != 0 && h.resumePoint(string(h.appendID(nil, set, seq)), set) != seq {
			t.Errorf("the id of %d of set %d is not taken", seq, set)
		}
	})
}

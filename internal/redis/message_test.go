package redis

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/like"
)

func TestMessage(t *testing.T) {
	want := []like.Total{
		total(1, 0, 1),
		{Item: like.Item{Collection: strings.Repeat("c", like.MaxCollectionBytes), ID: strings.Repeat("ü", like.MaxIDBytes/2)}, Count: math.MaxInt64, Version: math.MaxUint64},
		total(2, 300, 1<<40),
	}
	got, err := parseTotals(string(appendTotals(nil, want)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	largest := appendTotals(nil, want[1:2])
	if n := len(largest) * maxBatch; n > maxMessage {
		t.Errorf("the largest message has %d bytes, but %d are read", n, maxMessage)
	}
}

func TestMessageThatDoesNotParse(t *testing.T) {
	good := string(appendTotals(nil, []like.Total{total(1, 300, 300)}))
	bad := map[string]string{
		"version 0":      string(appendTotals(nil, []like.Total{total(1, 1, 0)})),
		"negative count": string(appendTotals(nil, []like.Total{total(1, -1, 1)})),
		"no collection":  string(appendTotals(nil, []like.Total{{Item: like.Item{ID: "1"}, Version: 1}})),
		"control sign":   string(appendTotals(nil, []like.Total{{Item: like.Item{Collection: "a", ID: "\n"}, Version: 1}})),
		"long":           strings.Repeat(good, maxMessage/len(good)+1),
		"huge length":    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + good,
		"endless number": strings.Repeat("\xff", 20),
	}
	for n := 1; n < len(good); n++ {
		bad[good[:n]] = good + good[:n]
	}
	for name, message := range bad {
		if got, err := parseTotals(message); !errors.Is(err, like.ErrCorrupt) || got != nil {
			t.Errorf("%q: %v, %v; want ErrCorrupt and nothing", name, got, err)
		}
	}
}

func FuzzMessage(f *testing.F) {
	f.Add(string(appendTotals(nil, []like.Total{total(1, 300, 300), total(2, 0, 1)})))
	f.Fuzz(func(t *testing.T, message string) {
		got, err := parseTotals(message)
		if err != nil {
			return
		}
		again, err := parseTotals(string(appendTotals(nil, got)))
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("written and read again: %v\n%s", err, diff)
		}
		for _, t2 := range got {
			if t2.Item.Validate() != nil || t2.Count < 0 || t2.Version == 0 {
				t.Errorf("%+v was let in", t2)
			}
		}
	})
}

package redis

import (
	"slices"
	"testing"

	"likewise/internal/like"
)

func TestNoted(t *testing.T) {
	n := newNoted()
	n.add(total(1, 5, 5), total(2, 0, 7))
	n.add(total(1, 4, 4))
	got := n.missing([]like.Total{total(1, 5, 5), total(1, 6, 6), total(2, 1, 6), total(2, 1, 8), total(3, 1, 1)})
	if want := []like.Total{total(1, 6, 6), total(2, 1, 8), total(3, 1, 1)}; !slices.Equal(got, want) {
		t.Errorf("missing are %v, want %v", got, want)
	}
	for i := range 2 * len(n.slots) { // items displace each other
		n.add(total(i, 1, 1))
	}
	if got := n.missing([]like.Total{total(1, 5, 6)}); len(got) != 1 {
		t.Error("a version that was never there is not missing")
	}
}

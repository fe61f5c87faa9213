package like_test

import (
	"testing"

	"likewise/internal/like"
)

func TestFold(t *testing.T) {
	none, old := like.State{}, like.State{Liked: true, Since: 5}
	tests := []struct {
		name   string
		before like.State
		op     like.Op
		after  like.State
		delta  int
	}{
		{"first like", none, like.OpLike, like.State{Liked: true, Since: 9}, 1},
		{"repeated like keeps the first stamp", old, like.OpLike, old, 0},
		{"unlike", old, like.OpUnlike, none, -1},
		{"repeated unlike", none, like.OpUnlike, none, 0},
		{"no operation", none, 0, none, 0},
		{"no operation on a like", old, 0, old, 0},
	}
	for _, tt := range tests {
		after, delta := like.Fold(tt.before, tt.op, 9)
		if after != tt.after || delta != tt.delta {
			t.Errorf("%s: Fold = %+v, %d, want %+v, %d", tt.name, after, delta, tt.after, tt.delta)
		}
	}
}

// TestFoldSums checks the law behind every total: over any sequence of operations
// the deltas sum to whether the pair is liked at the end.
func TestFoldSums(t *testing.T) {
	const length = 8
	for bits := range 1 << length {
		state, sum := like.State{}, 0
		for k := range length {
			op := like.OpLike
			if bits>>k&1 == 1 {
				op = like.OpUnlike
			}
			var delta int
			state, delta = like.Fold(state, op, like.Stamp(k+1))
			sum += delta
			if liked := op == like.OpLike; state.Liked != liked {
				t.Fatalf("operations %08b: %v after %v", bits, state, op)
			}
		}
		if sum != 0 != state.Liked || sum < 0 || sum > 1 {
			t.Fatalf("operations %08b: deltas sum to %d, state %v", bits, sum, state)
		}
	}
}

package like_test

import (
	"errors"
	"slices"
	"testing"

	"likewise/internal/like"
)

func TestKinds(t *testing.T) {
	want := []error{like.ErrInvalid, like.ErrNotFound, like.ErrOverloaded, like.ErrUnavailable, like.ErrClosed, like.ErrCorrupt}
	kinds := like.Kinds()
	if !slices.Equal(kinds, want) {
		t.Fatalf("Kinds() = %v, want %v", kinds, want)
	}
	for i, a := range kinds {
		for j, b := range kinds {
			if errors.Is(a, b) != (i == j) {
				t.Errorf("%v and %v are told apart wrongly", a, b)
			}
		}
	}
	kinds[0] = nil
	if like.Kinds()[0] == nil {
		t.Error("a caller can change the set of kinds")
	}
}

package ledger

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/like"
)

// script is a feeder whose feeds end with one error after the other.
type script struct {
	ends  []error
	opens int
}

func (s *script) Feed(context.Context) iter.Seq2[[]like.Total, error] {
	end := s.ends[s.opens]
	s.opens++
	return func(yield func([]like.Total, error) bool) {
		if yield(nil, nil) && yield([]like.Total{{Count: int64(s.opens)}}, nil) && end != nil {
			yield(nil, end)
		}
	}
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{ends: []error{like.ErrOverloaded, nil, like.ErrClosed}}
		var told []string
		start := time.Now()
		err := Follow(t.Context(), s, Follower{
			Live:    func() { told = append(told, "live") },
			Changed: func(totals []like.Total) { told = append(told, "changed") },
			Lost: func(err error) {
				if s.opens == 1 != errors.Is(err, like.ErrOverloaded) {
					t.Errorf("feed %d is lost with %v", s.opens, err)
				}
				told = append(told, "lost")
			},
		})
		want := []string{"live", "changed", "lost", "live", "changed", "lost", "live", "changed"}
		if !errors.Is(err, like.ErrClosed) || !slices.Equal(told, want) {
			t.Errorf("told %q and ended with %v; want %q and ErrClosed", told, err, want)
		}
		if took := time.Since(start); took < 100*time.Millisecond || took > time.Second {
			t.Errorf("two feeds were opened again within %s", took)
		}
	})
}

func TestFollowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Broadcast
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- Follow(ctx, &b, Follower{func() {}, func([]like.Total) {}, func(err error) { t.Error("lost", err) }})
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v, want nil", err)
		}
	})
}

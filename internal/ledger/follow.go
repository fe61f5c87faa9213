package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"likewise/internal/like"
)

// Follower is told what happens on the feeds that [Follow] opens one after the
// other. Its functions are called by one goroutine; all must be set.
type Follower struct {
	// Live says that a feed has become live. What was known before it may have
	// missed changes.
	Live func()
	// Changed brings changed totals. The slice is the ledger's again afterwards.
	Changed func([]like.Total)
	// Lost says why a feed ended early. The next one is opened after a short pause.
	Lost func(error)
}

// Follow follows the changes of a ledger until ctx is done, and then returns nil.
// It returns [like.ErrClosed] when the ledger closes first.
func Follow(ctx context.Context, feeder Feeder, to Follower) error {
	for {
		err := followOne(ctx, feeder, to)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, like.ErrClosed):
			return err
		}
		to.Lost(err)
		pause := time.NewTimer(50*time.Millisecond + rand.N(100*time.Millisecond))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

// followOne consumes one feed to its end.
func followOne(ctx context.Context, feeder Feeder, to Follower) error {
	live := false
	for totals, err := range feeder.Feed(ctx) {
		if err != nil {
			return err
		}
		if !live {
			live = true
			to.Live()
		}
		if len(totals) > 0 {
			to.Changed(totals)
		}
	}
	return fmt.Errorf("%w: feed of totals ended without a reason", like.ErrUnavailable)
}

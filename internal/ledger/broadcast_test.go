package ledger

import (
	"errors"
	"iter"
	"testing"
	"testing/synctest"

	"likewise/internal/like"
)

// opened opens a feed and takes the batch that says that it is live.
func opened(t *testing.T, b *Broadcast) (next func() ([]like.Total, error, bool)) {
	t.Helper()
	next, stop := iter.Pull2(b.Feed(t.Context()))
	t.Cleanup(stop)
	if batch, err, ok := next(); batch != nil || err != nil || !ok {
		t.Fatalf("first batch %v, %v, %v; want an empty one", batch, err, ok)
	}
	return next
}

func TestGapEndsTheFeedsThatAreOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Broadcast
		total := like.Total{Item: like.Item{Collection: "posts", ID: "1"}, Count: 1, Version: 1}
		before := opened(t, &b)
		b.Publish([]like.Total{total})
		b.Gap()
		b.Publish([]like.Total{total})
		after := opened(t, &b)
		b.Publish([]like.Total{total})

		if batch, err, _ := before(); batch != nil || !errors.Is(err, like.ErrOverloaded) {
			t.Errorf("feed from before the gap: %v, %v; want ErrOverloaded alone", batch, err)
		}
		if _, _, ok := before(); ok {
			t.Error("feed from before the gap goes on behind its error")
		}
		if batch, err, _ := after(); len(batch) != 1 || err != nil {
			t.Errorf("feed from behind the gap: %v, %v; want one total", batch, err)
		}
	})
}

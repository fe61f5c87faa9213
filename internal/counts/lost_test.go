package counts

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/like"
)

// A database that comes back without its last transactions has smaller versions than
// were told of. What was lost is shown until the next read, not for ever.
func TestTotalThatTheLedgerLost(t *testing.T) {
	t.Run("told by the feed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, feed := newFake(total("1", 3, 300)), newFeed()
			c := New(f, nil, DefaultConfig(), nil)
			stop := run(t, c, feed, nil)
			defer stop()
			mustPage(t, c, "", post("1"))
			feed.batches <- []like.Total{total("1", 4, 400)}
			synctest.Wait()
			if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 4 {
				t.Fatalf("what the feed told: %+v", got)
			}
			healsWithin(t, c, 10*time.Second)
		})
	})
	t.Run("from the shared cache", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, s := newFake(total("1", 3, 300)), newShared(total("1", 4, 400))
			c := New(f, s, DefaultConfig(), nil)
			stop := run(t, c, newFeed(), nil)
			defer stop()
			mustPage(t, c, "", post("1"))
			s.mu.Lock()
			delete(s.totals, post("1")) // expired
			s.mu.Unlock()
			healsWithin(t, c, 10*time.Second)
		})
	})
}

func healsWithin(t *testing.T, c *Counts, limit time.Duration) {
	t.Helper()
	var got []Entry
	for begin := time.Now(); time.Since(begin) < limit; {
		if got = mustPage(t, c, "", post("1")); got[0].Total == total("1", 3, 300) {
			return
		}
		time.Sleep(time.Second)
	}
	t.Errorf("after %s: %+v", limit, got)
}

// slowLedger answers what was true when it was asked.
type slowLedger struct{ *fakeLedger }

func (s slowLedger) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	totals, err := s.fakeLedger.Totals(ctx, items)
	time.Sleep(100 * time.Millisecond)
	return totals, err
}

// What comes while the ledger is read is newer than its answer.
func TestTotalThatComesDuringARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(slowLedger{newFake(total("1", 3, 300))}, nil, DefaultConfig(), nil)
		mustPage(t, c, "", post("1"))
		time.Sleep(10 * time.Second) // so that the next page reads again
		go func() {
			time.Sleep(50 * time.Millisecond)
			c.Observe(total("1", 4, 400))
		}()
		if got := mustPage(t, c, "", post("1")); got[0].Total != total("1", 4, 400) {
			t.Errorf("%+v", got)
		}
	})
}

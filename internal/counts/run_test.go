package counts

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/like"
)

// running returns counts whose Run is under way with a silent feed. It is for
// use inside a synctest bubble.
func running(t *testing.T, totals ...like.Total) (*fakeLedger, *Counts, func()) {
	t.Helper()
	f, feed := newFake(totals...), newFeed()
	c := New(f, nil, DefaultConfig(), nil)
	return f, c, run(t, c, feed, nil)
}

// run starts Run and returns what stops it and checks its error.
func run(t *testing.T, c *Counts, feed *fakeFeed, want error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, feed) }()
	<-feed.opened
	return func() {
		cancel()
		if err := <-ended; !errors.Is(err, want) {
			t.Errorf("Run = %v, want %v", err, want)
		}
	}
}

func TestFeedOverwritesWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, feed := newFake(total("1", 5, 5)), newFeed()
		c := New(f, nil, DefaultConfig(), nil)
		stop := run(t, c, feed, nil)
		defer stop()
		mustPage(t, c, "", post("1"))
		feed.batches <- []like.Total{total("1", 6, 6), total("2", 9, 9)}
		feed.batches <- []like.Total{total("1", 4, 4)}
		synctest.Wait()
		if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 6 {
			t.Errorf("%+v, want 6", got[0])
		}
		if n := c.cache.EstimatedSize(); n != 1 {
			t.Errorf("%d items cached: the feed must not fill the cache", n)
		}
	})
}

func TestPushedItemNeverExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, feed := newFake(total("1", 0, 0)), newFeed()
		c := New(f, nil, DefaultConfig(), nil)
		stop := run(t, c, feed, nil)
		defer stop()
		mustPage(t, c, "", post("1"))
		for v := range uint64(100) {
			time.Sleep(c.cfg.RefreshAfter / 2)
			feed.batches <- []like.Total{total("1", int64(v+1), v+1)}
			synctest.Wait()
			if got := mustPage(t, c, "", post("1")); got[0].Total.Version != v+1 {
				t.Fatalf("%+v, want version %d", got[0], v+1)
			}
		}
		if n := len(f.loads()); n != 1 {
			t.Errorf("%d loads of a hot item, want 1", n)
		}
	})
}

func TestInterruptedFeedRereadsWhatIsHeld(t *testing.T) {
	for _, kind := range []error{like.ErrOverloaded, like.ErrUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			f, feed := newFake(total("1", 5, 5)), newFeed()
			c := New(f, nil, DefaultConfig(), nil)
			stop := run(t, c, feed, nil)
			defer stop()
			time.Sleep(time.Millisecond)
			mustPage(t, c, "", post("1"))
			f.set(total("1", 6, 6)) // the change that the feed failed to deliver
			feed.errs <- kind
			<-feed.opened
			mustPage(t, c, "", post("1"))
			synctest.Wait()
			if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 6 {
				t.Errorf("%v: %+v, want 6 without waiting for its age", kind, got[0])
			}
		})
	}
}

func TestRunEndsWithAClosedLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := newFeed()
		stop := run(t, New(newFake(), nil, DefaultConfig(), nil), feed, like.ErrClosed)
		feed.errs <- like.ErrClosed
		synctest.Wait()
		stop()
	})
}

func TestRefreshOfManyItemsIsOneLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, stop := running(t)
		defer stop()
		items := []like.Item{post("1"), post("2"), post("3")}
		mustPage(t, c, "", items...)
		time.Sleep(c.cfg.RefreshAfter)
		f.gate = make(chan struct{})
		mustPage(t, c, "", items...)
		synctest.Wait()
		close(f.gate)
		synctest.Wait()
		asked := 0
		for _, load := range f.loads()[1:] {
			asked += len(load)
		}
		if asked != len(items) {
			t.Errorf("refresh asked for %d items, want %d", asked, len(items))
		}
	})
}

func TestRefreshGoesOnAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, stop := running(t, total("1", 5, 5))
		defer stop()
		mustPage(t, c, "", post("1"))
		f.failWith(like.ErrUnavailable)
		time.Sleep(c.cfg.RefreshAfter)
		mustPage(t, c, "", post("1"))
		time.Sleep(2 * pause)
		f.failWith(nil)
		f.set(total("1", 6, 6))
		mustPage(t, c, "", post("1"))
		synctest.Wait()
		if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 6 {
			t.Errorf("%+v, want 6", got[0])
		}
	})
}

package counts

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/like"
)

// twoShards is a ledger whose items with ids that begin with "b" are in a database that
// does not answer.
type twoShards struct{ *fakeLedger }

func (s twoShards) Shards() int { return 2 }

func (s twoShards) ShardOf(item like.Item) int {
	if item.ID[0] == 'b' {
		return 1
	}
	return 0
}

func (s twoShards) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	for _, item := range items {
		if s.ShardOf(item) == 1 {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
	}
	return s.fakeLedger.Totals(ctx, items)
}

// A database that hangs fails no page of items that are elsewhere, and makes none wait:
// neither behind a page of both, nor for a place, nor for a refresh.
func TestShardAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, feed := newFake(total("a", 1, 1), total("a2", 2, 2)), newFeed()
		cfg := DefaultConfig()
		cfg.MaxLoads = 2
		c := New(twoShards{f}, nil, cfg, nil)
		stop := run(t, c, feed, nil)
		defer stop()
		for n := range 5 { // more than may be under way
			go func() { _, _ = c.Page(t.Context(), "", []like.Item{post("a"), post("b" + string(rune('0'+n)))}) }()
		}
		synctest.Wait()
		start := time.Now()
		for range 20 {
			got := mustPage(t, c, "", post("a"), post("a2"))
			if got[0].Total.Count != 1 || got[1].Total.Count != 2 || got[0].Age != 0 {
				t.Fatalf("%+v", got)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("pages waited for %s", took)
		}

		c.store(total("b", 5, 5), c.now())
		time.Sleep(3 * cfg.RefreshAfter) // both are due
		f.set(total("a", 7, 7))
		for range 3 {
			mustPage(t, c, "", post("b"))
			mustPage(t, c, "", post("a"))
			synctest.Wait()
		}
		if got := mustPage(t, c, "", post("a")); got[0].Total.Count != 7 {
			t.Errorf("not refreshed beside a database that hangs: %+v", got)
		}
		time.Sleep(3 * cfg.RefreshAfter) // the other one has failed by now, this one is as good as ever
		f.set(total("a", 8, 8))
		mustPage(t, c, "", post("a"))
		time.Sleep(10 * cfg.RefreshAfter)
		f.set(total("a", 9, 9))
		if got := mustPage(t, c, "", post("a")); got[0].Total.Count != 9 || got[0].Age != 0 {
			t.Errorf("an old total beside a database that hangs: %+v", got)
		}
	})
}

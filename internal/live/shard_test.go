package live

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// sharded is a source of one shard, or of two: then one has the items whose names
// begin with "b". A read of several items hangs with any of them.
type sharded struct {
	*source
	shards  int
	hanging string // with what the names of items that hang begin
}

func (s *sharded) Shards() int { return s.shards }

func (s *sharded) ShardOf(item like.Item) int { return strings.Count(item.ID[:1], "b") % s.shards }

func (s *sharded) hang(first string) { s.with(func() { s.hanging = first }) }

func (s *sharded) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	var hanging string
	s.with(func() { hanging = s.hanging })
	if slices.ContainsFunc(items, func(i like.Item) bool { return strings.ContainsAny(i.ID[:1], hanging) }) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return s.source.Totals(ctx, items)
}

// overShards runs a test with a hub over n shards.
func overShards(t *testing.T, n int, fn func(t *testing.T, s *sharded, h *Hub, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &sharded{source: newSource(), shards: n}
		cfg := DefaultConfig()
		cfg.MaxPerAddress, cfg.MaxItems = 0, ledger.MaxItems
		h, err := New(cfg, s, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, h, s, nil)
		defer stop()
		synctest.Wait()
		fn(t, s, h, stop)
	})
}

func TestShardThatHangs(t *testing.T) {
	overShards(t, 2, func(t *testing.T, s *sharded, h *Hub, _ func()) {
		both := watch(t, h, Viewer{}, newPage(), "a", "b")
		defer both.leave()
		synctest.Wait()
		s.hang("b")
		for n := range 20 {
			w := watch(t, h, Viewer{}, newPage(), "b"+strconv.Itoa(n))
			defer w.leave()
			id := "a" + strconv.Itoa(n)
			v := watch(t, h, Viewer{}, newPage(), id)
			defer v.leave()
			synctest.Wait()
			v.mustShow(t, map[string]int64{id: 0})
			pass(h.cfg.LoadTimeout / 4)
		}
		w := watch(t, h, Viewer{}, newPage(), "a", "b1")
		pass(3 * h.cfg.LoadTimeout)
		if w.leave(); !errors.Is(w.err, like.ErrUnavailable) {
			t.Errorf("a stream of both shards: %v", w.err)
		}
		s.with(func() { s.silent = true })
		s.set("a", 7)
		s.set("b", 8)
		pass(h.cfg.Recheck + h.cfg.Interval)
		both.mustShow(t, map[string]int64{"a": 7, "b": 0})
		s.hang("")
		pass(h.cfg.LoadTimeout + pause + h.cfg.Interval)
		both.mustShow(t, map[string]int64{"a": 7, "b": 8})
	})
}

// TestEndWhileShardsHang ends a hub with reads under way and others that wait.
func TestEndWhileShardsHang(t *testing.T) {
	overShards(t, 2, func(t *testing.T, s *sharded, h *Hub, stop func()) {
		s.hang("ab")
		var waiting []*viewer
		for _, id := range []string{"a0", "b0", "a1", "b1"} {
			waiting = append(waiting, watch(t, h, Viewer{}, newPage(), id))
			synctest.Wait()
		}
		stop()
		for n, v := range waiting {
			if <-v.ended; v.err == nil || n >= 2 && !errors.Is(v.err, like.ErrClosed) {
				t.Errorf("stream %d: %v", n, v.err)
			}
		}
	})
}

// TestHalfALoad fails a load after its first part.
func TestHalfALoad(t *testing.T) {
	overShards(t, 1, func(t *testing.T, s *sharded, h *Hub, _ func()) {
		s.hang("b")
		first := watch(t, h, Viewer{}, newPage(), "b0") // the others share the next load
		defer first.leave()
		synctest.Wait()
		var ids []string
		for n := range ledger.MaxItems {
			ids = append(ids, "a"+strconv.Itoa(n))
		}
		v := watch(t, h, Viewer{}, newPage(), ids...)
		defer v.leave()
		synctest.Wait()
		w := watch(t, h, Viewer{}, newPage(), "b1", "a0")
		pass(3 * h.cfg.LoadTimeout)
		if w.leave(); !errors.Is(w.err, like.ErrUnavailable) {
			t.Errorf("a stream of what was not read: %v", w.err)
		}
		if len(v.total) != len(ids) {
			t.Errorf("a stream of what was read shows %d of %d items: %v", len(v.total), len(ids), v.err)
		}
	})
}

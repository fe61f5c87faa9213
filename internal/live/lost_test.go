package live

import (
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/like"
)

// TestTotalThatTheLedgerLost tells a total that is lost in a failover: afterwards the
// ledger has an older version, or that very version with another count.
func TestTotalThatTheLedgerLost(t *testing.T) {
	for _, kept := range []like.Total{
		{Item: post("1"), Version: 300, Count: 3},
		{Item: post("1"), Version: 400, Count: 5},
	} {
		bubble(t, func(t *testing.T, s *source, h *Hub) {
			lost := like.Total{Item: post("1"), Version: 400, Count: 4}
			s.with(func() { s.totals[post("1")] = like.Total{Item: post("1"), Version: 299, Count: 2} })
			v := watch(t, h, Viewer{}, newPage(), "1")
			defer v.leave()
			synctest.Wait()
			s.broadcast.Publish([]like.Total{lost})
			pass(h.cfg.Interval)
			v.mustShow(t, map[string]int64{"1": lost.Count})
			s.with(func() { s.totals[post("1")] = kept })
			pass(h.cfg.Recheck + h.cfg.Interval)
			w := watch(t, h, Viewer{}, newPage(), "1")
			defer w.leave()
			synctest.Wait()
			w.mustShow(t, map[string]int64{"1": kept.Count})
			// Going back is a fault to a page otherwise.
			if v.total["1"] != kept.Count || v.counts["1"] != kept.Version {
				t.Errorf("the open stream shows %d of version %d, want %+v", v.total["1"], v.counts["1"], kept)
			}
		})
	}
}

// TestChangeDuringRecheck changes a total after it was read again and before the
// answer arrives, which is older but shows no loss.
func TestChangeDuringRecheck(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		s.set("1", 1)
		v := watch(t, h, Viewer{}, newPage(), "1")
		defer v.leave()
		synctest.Wait()
		gate := make(chan struct{})
		s.with(func() { s.gate = gate })
		pass(h.cfg.Recheck)
		s.with(func() { s.gate = nil })
		s.set("1", 2)
		pass(h.cfg.Interval)
		v.mustShow(t, map[string]int64{"1": 2})
		gate <- struct{}{}
		pass(h.cfg.Interval)
		v.mustShow(t, map[string]int64{"1": 2})
		w := watch(t, h, Viewer{}, newPage(), "1")
		defer w.leave()
		synctest.Wait()
		w.mustShow(t, map[string]int64{"1": 2})
	}, func(c *Config) { c.LoadTimeout = time.Hour })
}

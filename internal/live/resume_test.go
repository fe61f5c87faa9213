package live

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/like"
)

func TestResume(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		p := newPage()
		v := watch(t, h, Viewer{}, p, "1", "2")
		synctest.Wait()
		v.leave()
		s.set("2", 5)
		pass(h.cfg.Interval)
		v = watch(t, h, Viewer{}, p, "2", "1")
		synctest.Wait()
		if p.mustShow(t, map[string]int64{"1": 0, "2": 5}); p.events != 2 || p.counts["1"] != 0 {
			t.Errorf("%d events, want the snapshot and one change: %q", p.events, v.got.String())
		}
		if got := v.got.String(); len(got) == 0 || containsItem(got, "1") || !containsItem(got, "2") {
			t.Errorf("resumed with %q, want item 2 only", got)
		}
		v.leave()
		v = watch(t, h, Viewer{}, p, "1", "2")
		defer v.leave()
		synctest.Wait()
		if got := v.got.String(); containsItem(got, "1") || containsItem(got, "2") {
			t.Errorf("resumed with %q although nothing changed", got)
		}
	})
}

// TestUnusableResumePoint returns with ids that prove nothing.
func TestUnusableResumePoint(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		s.set("1", 1)
		p, other := newPage(), newPage()
		v, w := watch(t, h, Viewer{}, p, "1", "2"), watch(t, h, Viewer{}, other, "1")
		defer v.leave()
		defer w.leave()
		synctest.Wait()
		set := h.audienceSet("1", "2")
		for _, id := range []string{
			"x", p.lastID + "0", p.lastID[1:], "0" + p.lastID[1:], other.lastID,
			string(h.appendID(nil, set, h.seq+1)), string(h.appendID(nil, set+1, h.seq)),
			h.epoch + "--", h.epoch + "-+1-" + strconv.FormatUint(set, 36), h.epoch + "-01-" + strconv.FormatUint(set, 36),
			string(h.appendID(nil, set, 1<<63)), string(h.appendID(nil, set, 0)),
		} {
			q := newPage()
			q.lastID = id
			u := watch(t, h, Viewer{}, q, "1", "2")
			synctest.Wait()
			if len(q.total) != 2 {
				t.Errorf("id %q brought %v, want a snapshot", id, q.total)
			}
			u.leave()
		}
	}, func(c *Config) { c.MaxPerAddress = 0 })
}

func (h *Hub) audienceSet(ids ...string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, _ := h.audienceOf(posts(ids...))
	return a.set
}

// TestResumeAfterForgetting lets the hub forget an item between two connections,
// which must not make the change in between invisible.
func TestResumeAfterForgetting(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		p := newPage()
		watchOnce := func(want int64) {
			v := watch(t, h, Viewer{}, p, "1")
			synctest.Wait()
			p.mustShow(t, map[string]int64{"1": want})
			v.leave()
		}
		watchOnce(0)
		pass(h.cfg.Linger + h.cfg.Interval)
		if len(h.items) != 0 {
			t.Fatalf("%d items kept", len(h.items))
		}
		s.set("1", 8)
		pass(h.cfg.Interval)
		watchOnce(8)
		s.set("1", 9)
		pass(h.cfg.Linger / 2)
		if len(h.items) != 1 {
			t.Fatal("an item was forgotten too early")
		}
		watchOnce(9)
		pass(h.cfg.Linger - h.cfg.Interval)
		if len(h.items) != 1 {
			t.Fatal("an item was forgotten too early after it was watched again")
		}
	})
}

func TestIdleItemsAreFew(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		for n := range 50 {
			v := watch(t, h, Viewer{}, newPage(), strconv.Itoa(n))
			synctest.Wait()
			v.leave()
		}
		pass(h.cfg.Interval)
		if len(h.items) != 10 || h.items[post("49")] == nil {
			t.Errorf("%d items kept, want the newest 10", len(h.items))
		}
	}, func(c *Config) { c.IdleItems = 10 })
}

// TestRandomViewers plays changes, losses, gaps, cuts and returns in random order,
// and compares what every page shows with the ledger once it is quiet.
func TestRandomViewers(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *source, h *Hub) {
				play(t, rand.New(rand.NewPCG(seed, 1)), s, h)
			}, func(c *Config) {
				c.MaxPerAddress = 0
				c.Recheck, c.Linger, c.IdleItems = 5*time.Second, 3*time.Second, 3
			})
		})
	}
}

func play(t *testing.T, random *rand.Rand, s *source, h *Hub) {
	sets := [][]string{{"1"}, {"1", "2", "3"}, {"3", "4"}, {"5"}, {"2", "5", "6", "7"}}
	pages, views := make([]*page, 15), make([]*viewer, 15)
	for i := range pages {
		pages[i] = newPage()
	}
	for range 400 {
		i := random.IntN(len(pages))
		switch random.IntN(6) {
		case 0, 1:
			s.set(strconv.Itoa(1+random.IntN(7)), int64(random.IntN(1000)))
		case 2:
			s.with(func() { s.silent = random.IntN(4) == 0 })
		case 3:
			if random.IntN(10) == 0 {
				s.interrupt(like.ErrOverloaded)
			}
		case 4:
			if views[i] != nil {
				views[i].leave()
				views[i] = nil
			} else {
				views[i] = watch(t, h, Viewer{}, pages[i], sets[i%len(sets)]...)
			}
		default:
			pass(time.Duration(random.IntN(int(h.cfg.Interval))))
		}
	}
	s.with(func() { s.silent = false })
	for i := range views {
		if views[i] == nil {
			views[i] = watch(t, h, Viewer{}, pages[i], sets[i%len(sets)]...)
		}
		defer views[i].leave()
	}
	pass(h.cfg.Recheck + 2*h.cfg.Interval)
	for i, p := range pages {
		want := map[string]int64{}
		for _, id := range sets[i%len(sets)] {
			want[id] = s.count(id)
		}
		p.mustShow(t, want)
	}
}

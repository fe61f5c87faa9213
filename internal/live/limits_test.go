package live

import (
	"errors"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/like"
)

// TestLimits opens as many streams as there may be, then one more, then closes one.
func TestLimits(t *testing.T) {
	alice, mallory := Viewer{User: "alice", Address: "192.0.2.1"}, Viewer{User: "mallory", Address: "192.0.2.1"}
	here, there := Viewer{Address: "192.0.2.1"}, Viewer{Address: "192.0.2.2"}
	for _, tt := range []struct {
		name   string
		full   Viewer
		limit  int
		others []Viewer
		kind   error
	}{
		{"user", alice, 5, []Viewer{mallory, here}, ErrTooMany},
		{"address", here, 20, []Viewer{there, alice}, ErrTooMany},
		{"all", Viewer{Address: "x"}, 30, nil, like.ErrOverloaded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *source, h *Hub) {
				var open []*viewer
				for range tt.limit {
					open = append(open, watch(t, h, tt.full, newPage(), "1"))
				}
				synctest.Wait()
				if h.open() != tt.limit {
					t.Fatalf("%d streams, want %d", h.open(), tt.limit)
				}
				over := watch(t, h, tt.full, newPage(), "1")
				if <-over.ended; !errors.Is(over.err, tt.kind) {
					t.Errorf("one more: %v", over.err)
				}
				for _, other := range tt.others {
					v := watch(t, h, other, newPage(), "1")
					synctest.Wait()
					if h.open() != tt.limit+1 {
						t.Errorf("%+v is refused too: %v", other, v.err)
					}
					v.leave()
				}
				open[0].leave()
				open[0] = watch(t, h, tt.full, newPage(), "1")
				synctest.Wait()
				for _, v := range open {
					v.mustShow(t, map[string]int64{"1": 0})
					v.leave()
				}
				if len(h.perUser)+len(h.perAddr)+len(h.audiences)+h.open() != 0 {
					t.Errorf("left behind: %v %v", h.perUser, h.perAddr)
				}
			}, func(c *Config) {
				if tt.kind == like.ErrOverloaded {
					c.MaxStreams, c.MaxPerAddress = tt.limit, 0
				}
			})
		})
	}
}

func TestItemsOfOneStream(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		ids := make([]string, h.cfg.MaxItems+1)
		for i := range ids {
			ids[i] = strconv.Itoa(i)
		}
		v := watch(t, h, Viewer{}, newPage(), ids...)
		if <-v.ended; !errors.Is(v.err, like.ErrInvalid) || h.open() != 0 {
			t.Errorf("%d items: %v", len(ids), v.err)
		}
		v = watch(t, h, Viewer{}, newPage(), ids[1:]...)
		defer v.leave()
		synctest.Wait()
		if len(v.total) != h.cfg.MaxItems {
			t.Errorf("%d items shown, want %d", len(v.total), h.cfg.MaxItems)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for err, want := range map[error]bool{ErrTooMany: true, like.ErrOverloaded: false, nil: false} {
		w := httptest.NewRecorder()
		if got := retryAfter(w.Header(), err); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
		seconds, parse := strconv.Atoi(w.Header().Get("Retry-After"))
		if (parse == nil) != want || want && seconds < 1 {
			t.Errorf("%v: Retry-After %q", err, w.Header().Get("Retry-After"))
		}
	}
}

// TestSlowClient has one client stop taking anything: the others are on time, it
// gets the newest values when it goes on, and is dropped when it does not.
func TestSlowClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		slow, stuck, quick := watch(t, h, Viewer{}, newPage(), "1", "2"), watch(t, h, Viewer{}, newPage(), "1"), watch(t, h, Viewer{}, newPage(), "1")
		defer slow.leave()
		defer stuck.leave()
		defer quick.leave()
		synctest.Wait()
		slow.block, stuck.block = make(chan struct{}), make(chan struct{})
		order()
		for n := range 4 {
			s.set("1", int64(n+1))
			s.set("2", int64(10*n))
			pass(h.cfg.Interval)
			quick.mustShow(t, map[string]int64{"1": int64(n + 1)})
		}
		slow.mustShow(t, map[string]int64{"1": 0, "2": 0})
		close(slow.block)
		synctest.Wait()
		if slow.mustShow(t, map[string]int64{"1": 4, "2": 30}); slow.events != 3 {
			t.Errorf("%d events, want the snapshot, the one it hung in and the newest", slow.events)
		}
		pass(h.cfg.WriteTimeout)
		if h.open() != 2 || value(h.metrics.slow) != 1 {
			t.Errorf("%d streams, %v dropped; want the stuck one gone", h.open(), value(h.metrics.slow))
		}
	})
}

// TestHeartbeats are comments, spread over the interval, and no resume point.
func TestHeartbeats(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		var open []*viewer
		for range 300 {
			v := watch(t, h, Viewer{}, newPage(), "1")
			defer v.leave()
			open = append(open, v)
		}
		synctest.Wait()
		first := open[0].lastID
		most, all := 0, 0
		for range h.beats() {
			pass(h.cfg.Interval)
			sum := 0
			for _, v := range open {
				sum += v.beats
			}
			most, all = max(most, sum-all), sum
		}
		if all != 300 {
			t.Errorf("%d heartbeats of 300 streams within one heartbeat's time", all)
		}
		if most > 60 { // 20 are expected at each of 15 ticks
			t.Errorf("%d heartbeats at once", most)
		}
		if v := open[0]; v.lastID != first || v.events != 1 || len(v.faults) > 0 {
			t.Errorf("heartbeats moved the id from %q to %q; %q", first, v.lastID, v.faults)
		}
	}, func(c *Config) { c.MaxPerAddress = 0 })
}

// TestHeartbeatsAreNoResumePoint is what happens to a client that is cut off after
// heartbeats and before changes.
func TestHeartbeatsAreNoResumePoint(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		p := newPage()
		v := watch(t, h, Viewer{}, p, "1")
		s.set("1", 1)
		pass(3 * h.cfg.Heartbeat)
		if p.beats < 2 {
			t.Fatalf("%d heartbeats", p.beats)
		}
		v.leave()
		for n := range int64(3) {
			s.set("1", 2+n)
		}
		v = watch(t, h, Viewer{}, p, "1")
		defer v.leave()
		pass(h.cfg.Interval)
		p.mustShow(t, map[string]int64{"1": 4})
	})
}

func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		var open []*viewer
		for range 100 {
			open = append(open, watch(t, h, Viewer{}, newPage(), "1"))
		}
		stuck := watch(t, h, Viewer{}, newPage(), "1")
		synctest.Wait()
		stuck.block = make(chan struct{})
		order()
		s.set("1", 1)
		pass(h.cfg.Interval)
		start := time.Now()
		if err := h.Drain(t.Context()); err != nil || time.Since(start) > h.cfg.WriteTimeout {
			t.Errorf("Drain = %v after %v", err, time.Since(start))
		}
		waits := map[time.Duration]bool{}
		for _, v := range open {
			<-v.ended
			waits[v.retry] = true
			if v.retry < h.cfg.Retry || v.retry > h.cfg.Retry+h.cfg.RetrySpread+h.cfg.DrainSpread {
				t.Errorf("retry %v", v.retry)
			}
			v.mustShow(t, map[string]int64{"1": 1})
		}
		if len(waits) < 90 {
			t.Errorf("%d different times to come back for 100 streams", len(waits))
		}
		late := watch(t, h, Viewer{}, newPage(), "1")
		if <-late.ended; !errors.Is(late.err, like.ErrClosed) {
			t.Errorf("a stream while draining: %v", late.err)
		}
		if err := h.Drain(t.Context()); err != nil {
			t.Errorf("a second Drain: %v", err)
		}
	}, func(c *Config) { c.MaxPerAddress = 0 })
}

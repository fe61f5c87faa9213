package live

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"likewise/internal/like"
)

// bubble runs a test with a hub whose time is the test's.
func bubble(t *testing.T, fn func(t *testing.T, s *source, h *Hub), change ...func(*Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		for _, c := range change {
			c(&cfg)
		}
		s := newSource()
		h, stop := startHub(t, cfg, s)
		defer stop()
		synctest.Wait()
		fn(t, s, h)
	})
}

// pass lets time pass, and everything end that it started.
func pass(d time.Duration) {
	order()
	time.Sleep(d)
	synctest.Wait()
}

func TestSnapshotThenChanges(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		s.set("1", 1_204_331)
		v := watch(t, h, Viewer{}, newPage(), "1", "2", "1")
		defer v.leave()
		synctest.Wait()
		v.mustShow(t, map[string]int64{"1": 1_204_331, "2": 0})
		s.set("2", 1)
		s.set("3", 9)
		pass(h.cfg.Interval)
		v.mustShow(t, map[string]int64{"1": 1_204_331, "2": 1})
		if v.events != 2 {
			t.Errorf("%d events, want the snapshot and one change", v.events)
		}
		want := "retry: " + strconv.FormatInt(v.retry.Milliseconds(), 10) + "\n\nevent: counts\nid: " + h.epoch + "-"
		if got := v.got.String(); got[:len(want)] != want {
			t.Errorf("the stream begins with %q, want %q", got, want)
		}
	})
}

func TestConflation(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		v := watch(t, h, Viewer{}, newPage(), "1")
		defer v.leave()
		synctest.Wait()
		for n := range 1000 {
			s.set("1", int64(n+1))
			synctest.Wait()
		}
		pass(h.cfg.Interval)
		v.mustShow(t, map[string]int64{"1": 1000})
		if v.events != 2 {
			t.Errorf("%d events for 1,000 changes within one interval, want 2 with the snapshot", v.events)
		}
		if n := value(h.metrics.merged); n != 999 {
			t.Errorf("%v totals were merged, want 999", n)
		}
	})
}

func TestOneFramePerAudience(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		a, b := watch(t, h, Viewer{}, newPage(), "1", "2"), watch(t, h, Viewer{}, newPage(), "2", "1", "2")
		c := watch(t, h, Viewer{}, newPage(), "1")
		defer a.leave()
		defer b.leave()
		defer c.leave()
		synctest.Wait()
		if n := len(h.audiences); n != 2 {
			t.Errorf("%d audiences for two sets of items", n)
		}
		s.set("2", 5)
		synctest.Wait()
		h.mu.Lock()
		dirty := len(h.dirty)
		h.mu.Unlock()
		if !h.publish(&h.flushing) || dirty != 1 || len(h.flushing.jobs) != 1 || len(h.flushing.jobs[0].clients) != 2 {
			t.Errorf("jobs %+v for one changed item with one audience of two", h.flushing.jobs)
		}
	})
}

// TestFeedInAnyOrder brings totals late, twice and in the wrong order.
func TestFeedInAnyOrder(t *testing.T) {
	for seed := range uint64(50) {
		bubble(t, func(t *testing.T, s *source, h *Hub) {
			random := rand.New(rand.NewPCG(seed, 0))
			v := watch(t, h, Viewer{}, newPage(), "1", "2")
			defer v.leave()
			synctest.Wait()
			s.with(func() { s.silent = true })
			var all []like.Total
			for n := range 40 {
				all = append(all, s.set(strconv.Itoa(1+n%2), int64(random.IntN(100))))
			}
			all = append(all, all...)
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for batch := range slices.Chunk(all, 1+random.IntN(9)) {
				h.observe(batch)
				pass(time.Duration(random.IntN(int(h.cfg.Interval))))
			}
			pass(h.cfg.Interval)
			v.mustShow(t, map[string]int64{"1": s.count("1"), "2": s.count("2")})
		}, func(c *Config) { c.Recheck = 0 })
	}
}

func TestLostChangesAreReadAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		v := watch(t, h, Viewer{}, newPage(), "1")
		defer v.leave()
		synctest.Wait()
		s.with(func() { s.silent = true })
		s.set("1", 7)
		pass(2 * h.cfg.Interval)
		v.mustShow(t, map[string]int64{"1": 0})
		pass(h.cfg.Recheck)
		v.mustShow(t, map[string]int64{"1": 7})
	})
}

func TestGapInTheFeedIsReadAgain(t *testing.T) {
	for _, cause := range []error{like.ErrOverloaded, like.ErrUnavailable} {
		bubble(t, func(t *testing.T, s *source, h *Hub) {
			v := watch(t, h, Viewer{}, newPage(), "1")
			defer v.leave()
			synctest.Wait()
			s.with(func() { s.silent, s.fail = true, like.ErrUnavailable })
			s.set("1", 7)
			s.interrupt(cause)
			pass(3 * h.cfg.Interval) // the ledger cannot be read at first
			v.mustShow(t, map[string]int64{"1": 0})
			s.with(func() { s.fail = nil })
			pass(2 * h.cfg.Interval)
			v.mustShow(t, map[string]int64{"1": 7})
			if n := value(h.metrics.resyncs); n != 1 {
				t.Errorf("%v resyncs, want 1", n)
			}
		}, func(c *Config) { c.Recheck = 0 })
	}
}

// TestChangeDuringSnapshot changes a total after it was read and before the answer
// of that read arrives.
func TestChangeDuringSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		s.set("1", 1)
		gate := make(chan struct{})
		s.with(func() { s.gate = gate })
		v := watch(t, h, Viewer{}, newPage(), "1")
		defer v.leave()
		synctest.Wait()
		s.set("1", 2)
		synctest.Wait()
		gate <- struct{}{}
		synctest.Wait()
		v.mustShow(t, map[string]int64{"1": 2})
	}, func(c *Config) { c.Recheck = 0; c.LoadTimeout = time.Hour })
}

// TestReadsAreShared has many subscribe to what is not known yet.
func TestReadsAreShared(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		gate := make(chan struct{})
		s.with(func() { s.gate = gate })
		for n := range 200 {
			v := watch(t, h, Viewer{}, newPage(), "1", strconv.Itoa(n))
			defer v.leave()
			synctest.Wait()
		}
		close(gate)
		synctest.Wait()
		if n := len(s.reads); n != 2 {
			t.Errorf("%d reads for 200 viewers, want one for the first and one for the rest", n)
		}
		if n := len(s.reads[0]) + len(s.reads[1]); n != 200 {
			t.Errorf("%d items read, want each of 200 once", n)
		}
	}, func(c *Config) { c.MaxPerAddress = 0 })
}

func TestLedgerFailsDuringSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		s.with(func() { s.fail = like.ErrUnavailable })
		v := watch(t, h, Viewer{}, newPage(), "1")
		synctest.Wait()
		if <-v.ended; !errors.Is(v.err, like.ErrUnavailable) || v.got.Len() > 0 || h.open() != 0 {
			t.Errorf("error %v, answer %q, %d streams", v.err, v.got.String(), h.open())
		}
		s.with(func() { s.fail = nil })
		s.set("1", 3)
		v = watch(t, h, Viewer{}, newPage(), "1")
		defer v.leave()
		synctest.Wait()
		s.with(func() { s.fail = like.ErrUnavailable })
		known := watch(t, h, Viewer{}, newPage(), "1")
		defer known.leave()
		synctest.Wait()
		known.mustShow(t, map[string]int64{"1": 3})
	})
}

func TestLedgerIsSlow(t *testing.T) {
	bubble(t, func(t *testing.T, s *source, h *Hub) {
		s.with(func() { s.gate = make(chan struct{}) })
		v := watch(t, h, Viewer{}, newPage(), "1")
		pass(h.cfg.LoadTimeout)
		if <-v.ended; !errors.Is(v.err, like.ErrUnavailable) {
			t.Errorf("error %v", v.err)
		}
	})
}

func TestRunEndsWithTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		h, err := New(DefaultConfig(), s, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, h, s, like.ErrClosed)
		v := watch(t, h, Viewer{}, newPage(), "1")
		synctest.Wait()
		s.broadcast.Close()
		<-v.ended
		stop()
		late := watch(t, h, Viewer{}, newPage(), "1")
		if <-late.ended; !errors.Is(late.err, like.ErrClosed) {
			t.Errorf("a stream after the end: %v", late.err)
		}
	})
}

// endless is a feed that ends without a reason.
type endless struct{}

func (endless) Feed(context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) { yield(nil, nil) }
}

func TestFeedWithoutAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(DefaultConfig(), newSource(), slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, h, endless{}, nil)
		pass(time.Minute)
		stop()
	})
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for i, change := range []func(*Config){
		func(c *Config) { c.Interval = 0 },
		func(c *Config) { c.Heartbeat = -1 },
		func(c *Config) { c.WriteTimeout = 0 },
		func(c *Config) { c.LoadTimeout = 0 },
		func(c *Config) { c.Retry = 0 },
		func(c *Config) { c.Recheck = -1 },
		func(c *Config) { c.Linger = -1 },
		func(c *Config) { c.RetrySpread = -1 },
		func(c *Config) { c.DrainSpread = -1 },
		func(c *Config) { c.MaxItems = 0 },
		func(c *Config) { c.MaxItems = 1001 },
		func(c *Config) { c.MaxStreams = 0 },
		func(c *Config) { c.Writers = 0 },
		func(c *Config) { c.MaxPerUser = -1 },
		func(c *Config) { c.MaxPerAddress = -1 },
		func(c *Config) { c.IdleItems = -1 },
		func(c *Config) { c.SendBuffer = -1 },
		func(c *Config) { c.MessageBytes = 0 },
		func(c *Config) { c.MessageRate = 0 },
		func(c *Config) { c.MessageBurst = 0 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		if err := cfg.Validate(); !errors.Is(err, like.ErrInvalid) {
			t.Errorf("change %d: %v", i, err)
		}
		if _, err := New(cfg, nil, nil, nil); err == nil {
			t.Errorf("change %d: New takes it", i)
		}
	}
}

package counts

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

func TestPageAnswersInRequestOrderWithOneLoad(t *testing.T) {
	f := newFake(total("1", 10, 3), total("2", 20, 4))
	c := New(f, nil, DefaultConfig(), nil)
	want := []Entry{
		{Total: total("2", 20, 4)}, {Total: total("x", 0, 0)}, {Total: total("1", 10, 3)}, {Total: total("2", 20, 4)},
	}
	for range 2 {
		got := mustPage(t, c, "", post("2"), post("x"), post("1"), post("2"))
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	}
	wantLoads := [][]like.Item{{post("2"), post("x"), post("1")}}
	if d := cmp.Diff(wantLoads, f.loads()); d != "" {
		t.Errorf("loads: each item once, unknown ones cached too\n%s", d)
	}
	mustPage(t, c, "", post("1"), post("new"))
	if d := cmp.Diff([]like.Item{post("new")}, f.loads()[1]); d != "" {
		t.Errorf("second load must ask for the miss only\n%s", d)
	}
}

func TestPageRefusesTooManyItems(t *testing.T) {
	c := New(newFake(), nil, DefaultConfig(), nil)
	if _, err := c.Page(t.Context(), "", make([]like.Item, ledger.MaxItems+1)); !errors.Is(err, like.ErrInvalid) {
		t.Errorf("err = %v, want ErrInvalid", err)
	}
}

func TestFailureIsNeverCachedAsZero(t *testing.T) {
	f := newFake(total("1", 10, 3))
	f.failWith(like.ErrUnavailable)
	c := New(f, nil, DefaultConfig(), nil)
	if _, err := c.Page(t.Context(), "", []like.Item{post("1")}); !errors.Is(err, like.ErrUnavailable) {
		t.Fatalf("err = %v, want ErrUnavailable", err)
	}
	f.failWith(nil)
	if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 10 {
		t.Errorf("count = %d, want 10", got[0].Total.Count)
	}
}

func TestLikedComesFromTheLedger(t *testing.T) {
	f := newFake()
	c := New(f, nil, DefaultConfig(), nil)
	if got := mustPage(t, c, "u1", post("1")); got[0].Liked || got[0].Total.Count != 0 {
		t.Fatalf("before: %+v", got[0])
	}
	f.mu.Lock()
	f.liked[post("1")] = true
	f.mu.Unlock()
	if got := mustPage(t, c, "u1", post("1")); !got[0].Liked || got[0].Total.Count != 1 {
		t.Errorf("own like with a lagging total: %+v, want liked and 1", got[0])
	}
	if got := mustPage(t, c, "", post("1")); got[0].Liked || got[0].Total.Count != 0 {
		t.Errorf("nobody's page shows a viewer's state: %+v", got[0])
	}
	f.failWith(like.ErrUnavailable)
	if _, err := c.Page(t.Context(), "u1", []like.Item{post("1")}); !errors.Is(err, like.ErrUnavailable) {
		t.Errorf("err = %v: an unreadable own state must not become false", err)
	}
}

func TestOlderVersionNeverWins(t *testing.T) {
	c := New(newFake(total("1", 5, 5)), nil, DefaultConfig(), nil)
	count := func() int64 { return mustPage(t, c, "", post("1"))[0].Total.Count }
	steps := []struct {
		observe like.Total
		want    int64
	}{
		{total("1", 7, 7), 7},
		{total("1", 6, 6), 7},
		{total("1", 99, 0), 7}, // no version: only somebody's view
		{total("1", 8, 8), 8},
	}
	if count() != 5 {
		t.Fatal("first load")
	}
	for _, s := range steps {
		if c.Observe(s.observe); count() != s.want {
			t.Errorf("after %+v count = %d, want %d", s.observe, count(), s.want)
		}
	}
}

func TestLoadUnderWayLosesToNewerTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(total("1", 5, 5))
		f.gate = make(chan struct{})
		c := New(f, nil, DefaultConfig(), nil)
		got := make(chan []Entry)
		go func() { got <- mustPage(t, c, "", post("1")) }()
		synctest.Wait() // the load has read version 5
		c.Observe(total("1", 6, 6))
		close(f.gate)
		if page := <-got; page[0].Total.Version != 6 {
			t.Errorf("reader got %+v, want version 6", page[0])
		}
		if page := mustPage(t, c, "", post("1")); page[0].Total.Version != 6 {
			t.Errorf("cache has %+v, want version 6", page[0])
		}
	})
}

func TestAgeingTotalIsServedAndReadBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, stop := running(t, total("1", 5, 5))
		defer stop()
		mustPage(t, c, "", post("1"))
		f.set(total("1", 6, 6))
		f.gate = make(chan struct{}) // a reader who waited would never return
		time.Sleep(c.cfg.RefreshAfter)
		for range 3 {
			if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 5 || got[0].Age != 0 {
				t.Errorf("while refreshing: %+v, want 5 and fresh", got[0])
			}
		}
		synctest.Wait()
		close(f.gate)
		synctest.Wait()
		if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 6 {
			t.Errorf("after refresh: %+v, want 6", got[0])
		}
		if n := len(f.loads()); n != 2 {
			t.Errorf("%d loads, want 2", n)
		}
	})
}

func TestExpiredTotalWaitsForTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(total("1", 5, 5))
		c := New(f, nil, DefaultConfig(), nil)
		mustPage(t, c, "", post("1"))
		f.set(total("1", 6, 6))
		time.Sleep(c.cfg.waitAfter())
		if got := mustPage(t, c, "", post("1")); got[0].Total.Count != 6 {
			t.Errorf("%+v, want 6", got[0])
		}
	})
}

func TestFailingLedgerLeavesAgedTotals(t *testing.T) {
	for _, kind := range like.Kinds() {
		aged := errors.Is(kind, like.ErrUnavailable) || errors.Is(kind, like.ErrOverloaded)
		t.Run(kind.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(total("1", 5, 5))
				c := New(f, nil, DefaultConfig(), nil)
				mustPage(t, c, "", post("1"))
				f.failWith(fmt.Errorf("store: %w", kind))
				time.Sleep(20 * time.Second)
				got, err := c.Page(t.Context(), "", []like.Item{post("1")})
				if !aged {
					if !errors.Is(err, kind) {
						t.Fatalf("err = %v, want %v", err, kind)
					}
					return
				}
				if err != nil || got[0].Total.Count != 5 || got[0].Age != 20*time.Second {
					t.Fatalf("%+v, %v; want 5, 20s old", got, err)
				}
				if _, err := c.Page(t.Context(), "", []like.Item{post("1"), post("2")}); !errors.Is(err, kind) {
					t.Errorf("err = %v: an item never seen must fail", err)
				}
				time.Sleep(c.cfg.ExpireAfter)
				if _, err := c.Page(t.Context(), "", []like.Item{post("1")}); !errors.Is(err, kind) {
					t.Errorf("err = %v: too old must fail", err)
				}
				f.failWith(nil)
				if got := mustPage(t, c, "", post("1")); got[0].Age != 0 {
					t.Errorf("after recovery %+v, want fresh", got[0])
				}
			})
		})
	}
}

func TestHangingLedgerDelaysOneReaderOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c, stop := running(t, total("1", 5, 5))
		defer stop()
		mustPage(t, c, "", post("1"))
		f.gate = make(chan struct{})
		time.Sleep(20 * time.Second)
		for i := range 50 {
			start := time.Now()
			got := mustPage(t, c, "", post("1"))
			if got[0].Total.Count != 5 || got[0].Age < 20*time.Second {
				t.Fatalf("%+v, want 5 with its age", got[0])
			}
			if took := time.Since(start); i > 0 && took > 0 {
				t.Fatalf("read %d waited %v", i, took)
			}
			time.Sleep(100 * time.Millisecond)
		}
		close(f.gate)
		time.Sleep(c.cfg.LoadTimeout + pause)
		mustPage(t, c, "", post("1"))
		synctest.Wait()
		if got := mustPage(t, c, "", post("1")); got[0].Age != 0 {
			t.Errorf("after recovery %+v, want fresh", got[0])
		}
	})
}

func TestCacheKeepsNoRequestAlive(t *testing.T) {
	c := New(newFake(), nil, DefaultConfig(), nil)
	request := "posts/1 and a long tail"
	item := like.Item{Collection: request[:5], ID: request[6:7]}
	mustPage(t, c, "", item)
	for held := range c.cache.Keys() {
		if unsafe.StringData(held.ID) == unsafe.StringData(item.ID) {
			t.Error("the cached key shares memory with the request")
		}
	}
}

func TestConfigValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"items":   func(c *Config) { c.Items = 0 },
		"refresh": func(c *Config) { c.RefreshAfter = 0 },
		"load":    func(c *Config) { c.LoadTimeout = 0 },
		"expire":  func(c *Config) { c.ExpireAfter = c.RefreshAfter - 1 },
	} {
		cfg := DefaultConfig()
		if spoil(&cfg); !errors.Is(cfg.Validate(), like.ErrInvalid) {
			t.Errorf("%s: accepted", name)
		}
	}
}

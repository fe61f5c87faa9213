package redis

import (
	"slices"
	"testing"
	"time"

	"likewise/internal/like"
	"likewise/internal/limit"
	"likewise/test/harness"
	"likewise/test/servers"
)

// hurried are settings of a test that waits for the timeout of calls.
func hurried(url string) Config {
	cfg := settings(url)
	cfg.Timeout = 200 * time.Millisecond
	return cfg
}

// slack is what a busy machine may add to a deadline, beside what pauses sees.
const slack = 500 * time.Millisecond

// pauses measures for how long the machine lets nobody work, until it is ended.
func pauses() (end func() time.Duration) {
	const beat = 5 * time.Millisecond
	stop, lost := make(chan struct{}), make(chan time.Duration)
	go func() {
		sum, live := time.Duration(0), true
		for live {
			began := time.Now()
			select {
			case <-time.After(beat):
			case <-stop:
				live = false
			}
			sum += max(0, time.Since(began)-2*beat)
		}
		lost <- sum
	}()
	return func() time.Duration { close(stop); return <-lost }
}

// timed returns how long a call takes on a machine that lets it work.
func timed(call func()) time.Duration {
	end, start := pauses(), time.Now()
	call()
	took := time.Since(start)
	return took - end()
}

// works reports whether totals of all segments can be set and read.
func works(t testing.TB, c *Client, version uint64) bool {
	totals := make([]like.Total, 100)
	for i := range totals {
		totals[i] = total(i, int64(i), version)
	}
	store(c, totals...)
	got, known := c.Get(t.Context(), posts(len(totals)))
	return !slices.Contains(known, false) && slices.Equal(got, totals)
}

// bounded calls everything that a caller waits for, and checks that nothing takes
// longer than it may.
func bounded(t testing.TB, c *Client, l *Limiter) {
	t.Helper()
	for what, call := range map[string]func(){
		"a page":      func() { c.Get(t.Context(), posts(20)) },
		"a like":      func() { _, _ = l.Allow(t.Context(), "u1") },
		"a total":     func() { c.Put([]like.Total{total(1, 1, 1)}) },
		"a change":    func() { c.Publish([]like.Total{total(1, 1, 1)}) },
		"a readiness": func() { _ = c.Ready(t.Context()) },
	} {
		if took := timed(call); took > c.cfg.Timeout+slack {
			t.Errorf("%s took %s", what, took)
		}
	}
}

func mustLimiter(t testing.TB, c *Client, name string, cfg limit.Config) *Limiter {
	t.Helper()
	l, err := NewLimiter(c, name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDownAtStart(t *testing.T) {
	r := servers.Redis(t)
	r.Kill(t, 0)
	c, err := Open(hurried(r.URL()), quiet(t), nil)
	if err != nil {
		t.Fatalf("a node does not start without Redis: %v", err)
	}
	defer c.Close()
	l := mustLimiter(t, c, "user", limit.DefaultUser())
	bounded(t, c, l)
	if c.Ready(t.Context()) == nil {
		t.Error("ready without Redis")
	}
	if d, err := l.Allow(t.Context(), "u2"); err != nil || !d.OK {
		t.Errorf("without Redis a like is %+v, %v", d, err)
	}
	r.Start(t, 0)
	eventually(t, "Redis is used", func() bool { return works(t, c, 1) && c.Ready(t.Context()) == nil })
}

func TestCloseWithoutRedis(t *testing.T) {
	for what, harm := range map[string]func(testing.TB, *servers.RedisServer){
		"killed": func(tb testing.TB, r *servers.RedisServer) { r.Kill(tb, 0) },
		"frozen": func(tb testing.TB, r *servers.RedisServer) { r.Freeze(tb, 0) },
	} {
		t.Run(what, func(t *testing.T) {
			r := servers.Redis(t)
			c := connect(t, hurried(r.URL()))
			harm(t, r)
			c.Publish([]like.Total{total(1, 1, 1)})
			took := timed(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
			if took > 4*time.Second {
				t.Errorf("Close took %s", took)
			}
			bounded(t, c, mustLimiter(t, c, "user", limit.DefaultUser()))
			if err := c.Close(); err != nil || c.Ready(t.Context()) == nil {
				t.Errorf("closed again: %v; ready afterwards: %v", err, c.Ready(t.Context()))
			}
		})
	}
}

// TestHarmedNode kills and freezes one node, and brings it back. Nobody waits longer
// than a call may take, calls that would fail are not made after a few, and when
// the node is back it is used again.
func TestHarmedNode(t *testing.T) {
	for what, act := range map[string]struct {
		harm, heal func(*servers.RedisServer, testing.TB, int)
	}{
		"killed": {(*servers.RedisServer).Kill, (*servers.RedisServer).Start},
		"frozen": {(*servers.RedisServer).Freeze, (*servers.RedisServer).Thaw},
	} {
		for name, start := range map[string]func(testing.TB, ...servers.Option) *servers.RedisServer{
			"one": servers.Redis, "cluster": servers.RedisCluster,
		} {
			t.Run(what+" "+name, func(t *testing.T) {
				r := start(t)
				c := connect(t, hurried(r.URL()))
				l := mustLimiter(t, c, "user", limit.DefaultUser())
				eventually(t, "Redis works", func() bool { return works(t, c, 1) })
				act.harm(r, t, 0)
				eventually(t, "the breaker opens", func() bool {
					bounded(t, c, l)
					return c.Ready(t.Context()) != nil
				})
				for range 20 {
					bounded(t, c, l)
				}
				act.heal(r, t, 0)
				eventually(t, "Redis works again", func() bool { return works(t, c, 2) && c.Ready(t.Context()) == nil })
			})
		}
	}
}

// late is how many calls may begin after their caller gave up the last one that is
// tolerated, and before the breaker hears of it, on a busy machine.
const late = 3

// TestOpenBreakerCostsNothing: while Redis is frozen, a caller is slow a few times
// and then not at all.
func TestOpenBreakerCostsNothing(t *testing.T) {
	r := servers.Redis(t)
	c := connect(t, hurried(r.URL()))
	r.Freeze(t, 0)
	eventually(t, "the breaker opens", func() bool {
		c.Get(t.Context(), posts(20))
		return c.breaker.isOpen(0)
	})
	failed := value(t, c.metrics.get.failed)
	if failed < tolerated || failed > tolerated+late {
		t.Errorf("%v calls failed before the breaker opened, want %d", failed, tolerated)
	}
	for range 1000 {
		c.Get(t.Context(), posts(20))
	}
	if got := value(t, c.metrics.get.failed); got != failed {
		t.Errorf("%v calls failed, want no more than %v", got, failed)
	}
}

// TestSlowRedis is too slow for every call, and then fast again.
func TestSlowRedis(t *testing.T) {
	proxy := servers.Proxy(t, servers.Redis(t).URL())
	cfg := hurried(proxy.URL())
	cfg.Timeout = 50 * time.Millisecond
	c := connect(t, cfg)
	l := mustLimiter(t, c, "user", limit.DefaultUser())
	proxy.Delay(4 * c.cfg.Timeout)
	for start := time.Now(); time.Since(start) < 2*time.Second; {
		c.Get(t.Context(), posts(20))
	}
	bounded(t, c, l)
	if got := value(t, c.metrics.get.failed); got > tolerated+late {
		t.Errorf("%v pages were delayed in two seconds, want %d", got, tolerated)
	}
	proxy.Delay(0)
	eventually(t, "Redis works again", func() bool { return works(t, c, 1) && c.Ready(t.Context()) == nil })
}

// TestConnectingDelaysNobody: while one caller connects to a server that does not
// answer, others do not wait for that.
func TestConnectingDelaysNobody(t *testing.T) {
	proxy := servers.Proxy(t, servers.Redis(t).URL())
	cfg := hurried(proxy.URL())
	cfg.Timeout = 50 * time.Millisecond
	c := connect(t, cfg)
	l := mustLimiter(t, c, "user", limit.DefaultUser())
	subscribe(t, c, silent{}).sees(c, 1)
	proxy.Delay(5 * time.Second)
	proxy.Cut()
	if err := proxy.Heal(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "subscriptions end", func() bool { return value(t, c.metrics.resubscribed) >= segments })
	sleep(t.Context(), 3*firstPause) // they are connecting now, for a second
	for range tolerated {
		bounded(t, c, l)
	}
}

// TestRestOfTheClusterIsUsed freezes one node of three.
func TestRestOfTheClusterIsUsed(t *testing.T) {
	harness.SkipUnlessHeavy(t, "a Redis Cluster takes seconds to form")
	r := servers.RedisCluster(t, servers.With("cluster-require-full-coverage", "no"))
	c := connect(t, hurried(r.URL()))
	l := mustLimiter(t, c, "user", limit.DefaultUser())
	eventually(t, "Redis works", func() bool { return works(t, c, 1) })
	r.Freeze(t, 0)
	const shared = segments / 3 // the segment that two nodes have slots of
	if _, known := c.Get(t.Context(), posts(100)); !slices.Contains(known, true) {
		t.Error("one node that is late costs what the others have")
	}
	eventually(t, "its segments are given up", func() bool {
		bounded(t, c, l)
		c.Get(t.Context(), posts(100))
		return c.breaker.open().size() >= shared
	})
	var known []bool
	if took := timed(func() { _, known = c.Get(t.Context(), posts(100)) }); took > slack {
		t.Errorf("a page took %s", took)
	}
	for i, ok := range known {
		segment := segmentOf(c.totalKey(post(i)))
		if segment != shared && ok != (segment > shared) {
			t.Errorf("item %d of segment %d is known: %v", i, segment, ok)
		}
	}
}

// TestFailover loses a primary with a replica, which takes over.
func TestFailover(t *testing.T) {
	harness.SkipUnlessHeavy(t, "a Redis Cluster needs seconds to see that a primary is gone")
	for what, harm := range map[string]func(*servers.RedisServer, testing.TB, int){
		"killed": (*servers.RedisServer).Kill,
		"frozen": (*servers.RedisServer).Freeze,
	} {
		t.Run(what, func(t *testing.T) {
			r := servers.RedisCluster(t, servers.WithReplicas)
			c := connect(t, hurried(r.URL()))
			l := mustLimiter(t, c, "user", limit.DefaultUser())
			other := connect(t, hurried(r.URL()))
			feed := subscribe(t, other, silent{})
			harm(r, t, 0)
			start := time.Now()
			for version := uint64(2); !works(t, c, version) || c.Ready(t.Context()) != nil; version++ {
				bounded(t, c, l)
				if time.Since(start) > 20*time.Second {
					t.Fatal("the replica did not take over")
				}
			}
			t.Logf("Redis works again after %s", time.Since(start).Round(time.Millisecond))
			feed.sees(c, 1<<20)
			t.Logf("every channel works again after %s", time.Since(start).Round(time.Millisecond))
		})
	}
}

// TestRedisThatRefuses has a password, and databases of a server.
func TestRedisThatRefuses(t *testing.T) {
	r := servers.Redis(t)
	must(t, admin(t, r), "CONFIG", "SET", "requirepass", "secret")
	addr := r.Addresses()[0]
	for url, ok := range map[string]bool{
		"redis://" + addr:                      false,
		"redis://:wrong@" + addr:               false,
		"redis://default:secret@" + addr:       true,
		"redis://:secret@" + addr + "/9":       true,
		"redis://:secret@" + addr + "/99":      false,
		"redis://:secret@" + addr + "," + addr: false, // is no cluster
		"rediss://:secret@" + addr:             false, // has no TLS
	} {
		t.Run(url, func(t *testing.T) {
			c, err := Open(hurried(url), quiet(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if ok {
				eventually(t, "it works", func() bool { return works(t, c, 1) })
				return
			}
			for range 5 {
				bounded(t, c, mustLimiter(t, c, "user", limit.DefaultUser()))
			}
			if works(t, c, 1) || c.Ready(t.Context()) == nil {
				t.Error("it works")
			}
		})
	}
}

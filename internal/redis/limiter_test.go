package redis

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/limit"
	"likewise/test/servers"
)

var _ limit.Limiter = (*Limiter)(nil)

// slowly gives no token back during a test.
var slowly = limit.Config{Rate: 0.01, Burst: 10, MaxKeys: 1 << 10}

// nearly equal are decisions between which a second may have passed.
var nearly = cmp.Comparer(func(a, b limit.Decision) bool {
	same := func(a, b int) bool { return max(a, b)-min(a, b) <= 1 }
	return a.OK == b.OK && a.Limit == b.Limit && a.Window == b.Window && a.Remaining == b.Remaining &&
		same(a.RetryAfter, b.RetryAfter) && same(a.Reset, b.Reset)
})

func allow(t testing.TB, l *Limiter, key string) limit.Decision {
	t.Helper()
	d, err := l.Allow(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fallbacks is how often a limiter of c did not ask Redis or got no answer.
func fallbacks(t testing.TB, c *Client) float64 {
	t.Helper()
	return value(t, c.metrics.limit.skipped) + value(t, c.metrics.limit.failed)
}

func testLimitOfOneUser(t *testing.T, r *servers.RedisServer) {
	c := connect(t, settings(r.URL()))
	l := mustLimiter(t, c, "user", slowly)
	local, err := limit.NewLocal(slowly)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 15 {
		seen, err := l.Peek(t.Context(), "u1")
		if err != nil {
			t.Fatal(err)
		}
		want, _ := local.Peek(t.Context(), "u1")
		if diff := cmp.Diff(want, seen, nearly); diff != "" {
			t.Errorf("look %d (-local +redis):\n%s", i, diff)
		}
		want, _ = local.Allow(t.Context(), "u1")
		if diff := cmp.Diff(want, allow(t, l, "u1"), nearly); diff != "" {
			t.Errorf("request %d (-local +redis):\n%s", i, diff)
		}
	}
	for _, key := range []string{"u2", "u1}", "{u1", "", "u1 ", "U1"} {
		if d := allow(t, l, key); !d.OK || d.Remaining != 9 {
			t.Errorf("user %q has the limit of another: %+v", key, d)
		}
	}
	if d := allow(t, mustLimiter(t, c, "read", slowly), "u1"); d.Remaining != 9 {
		t.Errorf("another limit has the buckets of the first: %+v", d)
	}
	if n := fallbacks(t, c); n != 0 {
		t.Errorf("%v decisions were local", n)
	}
}

// testOneLimitOnAllNodes has three nodes allow one user at the same time.
func testOneLimitOnAllNodes(t *testing.T, r *servers.RedisServer) {
	var allowed atomic.Int64
	var users sync.WaitGroup
	for range 3 {
		l := mustLimiter(t, connect(t, settings(r.URL())), "user", slowly)
		for range 20 {
			users.Go(func() {
				if allow(t, l, "u1").OK {
					allowed.Add(1)
				}
			})
		}
	}
	users.Wait()
	if got := allowed.Load(); got != int64(slowly.Burst) {
		t.Errorf("%d requests were allowed, want %d", got, slowly.Burst)
	}
}

// testLimitAndClocks sets buckets as a clock that stepped would have left them
// (drill 52): nobody is locked out for longer than a bucket takes to fill, and
// nobody gets more than a bucket.
func testLimitAndClocks(t *testing.T, r *servers.RedisServer) {
	cfg := limit.Config{Rate: 20, Burst: 10, MaxKeys: 1 << 10}
	redis := admin(t, r)
	c := connect(t, settings(r.URL()))
	l := mustLimiter(t, c, "user", cfg)
	key := c.key(limitFormat, "user:{u1}")
	for what, full := range map[string]time.Time{
		"back by an hour":     time.Now().Add(time.Hour),
		"back by 1000 years":  time.Now().AddDate(1000, 0, 0),
		"forward by an hour":  time.Now().Add(-time.Hour),
		"forward by 50 years": time.Now().AddDate(-50, 0, 0),
	} {
		must(t, redis, "SET", key, fmt.Sprint(full.UnixMicro()))
		start, ok := time.Now(), 0
		var refused time.Time // the first time
		ask := func() bool {
			began := time.Now()
			d := allow(t, l, "u1")
			switch {
			case d.OK:
				ok++
			case d.RetryAfter > 1 || d.Reset > 1:
				t.Errorf("%s: %+v", what, d)
			case refused.IsZero():
				refused = time.Now()
			case ok == 0 && began.Sub(refused) > time.Second:
				t.Errorf("%s: still locked out after %s", what, began.Sub(refused))
			}
			return d.OK
		}
		for range cfg.Burst + 10 {
			ask()
		}
		back := int(time.Since(start).Seconds()*cfg.Rate) + 1 // tokens that came back meanwhile
		full := map[bool]int{false: cfg.Burst, true: 0}[full.After(time.Now())]
		if ok < full || ok > full+back {
			t.Errorf("%s: %d requests were allowed, want %d and up to %d that came back", what, ok, full, back)
		}
		eventually(t, what+": a token comes back", ask)
	}
	eventually(t, "a full bucket is forgotten", func() bool {
		m := must(t, redis, "EXISTS", key)
		n, err := m.AsInt64()
		return err == nil && n == 0
	})
}

func testLimitsWithoutScripts(t *testing.T, r *servers.RedisServer) {
	c, redis := connect(t, settings(r.URL())), admin(t, r)
	l := mustLimiter(t, c, "user", slowly)
	for i := range 5 {
		for _, node := range redis.Nodes() {
			ask(t, node, "SCRIPT", "FLUSH")
		}
		if d := allow(t, l, "u1"); d.Remaining != 9-i {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	// What is in the way is the local bucket's business, and no sign of death.
	must(t, redis, "RPUSH", c.key(limitFormat, "user:{u2}"), "1")
	for i := range 15 {
		if d := allow(t, l, "u2"); d.OK != (i < slowly.Burst) {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	if c.Ready(t.Context()) != nil {
		t.Error("Redis was taken for dead")
	}
}

// TestLimitWithoutRedis: each node allows one limit of its own, and afterwards what
// was taken before still counts.
func TestLimitWithoutRedis(t *testing.T) {
	r := servers.Redis(t)
	c := connect(t, settings(r.URL())) // patient, so that the first call is not local
	l := mustLimiter(t, c, "user", slowly)
	if d := allow(t, l, "u1"); d.Remaining != 9 {
		t.Fatalf("%+v", d)
	}
	r.Freeze(t, 0)
	allowed := 0
	for range 3 * slowly.Burst {
		if allow(t, l, "u1").OK {
			allowed++
		}
	}
	if allowed != slowly.Burst {
		t.Errorf("%d requests were allowed without Redis, want %d", allowed, slowly.Burst)
	}
	r.Thaw(t, 0)
	eventually(t, "Redis is back", func() bool { return c.Ready(t.Context()) == nil })
	// The first calls into the frozen server may have been carried out.
	failed := int(value(t, c.metrics.limit.failed))
	if d := allow(t, l, "u1"); d.Remaining < 8-failed || d.Remaining > 8 || failed > tolerated+late {
		t.Errorf("afterwards %+v", d)
	}
}

func TestLimitThatIsOff(t *testing.T) {
	c, err := Open(hurried("redis://127.0.0.1:1"), quiet(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := mustLimiter(t, c, "user", limit.Config{})
	if d := allow(t, l, "u1"); d != (limit.Decision{OK: true}) {
		t.Errorf("%+v, want no limit", d)
	}
	if _, err := NewLimiter(c, "user", limit.Config{Rate: -1}); err == nil {
		t.Error("a rate below zero was taken")
	}
}

package limit

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/like"
)

var _ Limiter = (*Local)(nil)

func mustLocal(t testing.TB, cfg Config) *Local {
	t.Helper()
	l, err := NewLocal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func allow(t testing.TB, l Limiter, key string) Decision {
	t.Helper()
	d, err := l.Allow(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		ok   bool
	}{
		{"user", DefaultUser(), true},
		{"address", DefaultAddress(), true},
		{"off", Config{}, true},
		{"slowest", Config{Rate: 10.0 / 86400, Burst: 10, MaxKeys: shards}, true},
		{"fastest", Config{Rate: maxRate, Burst: maxBurst, MaxKeys: shards}, true},
		{"negative", Config{Rate: -1, Burst: 1, MaxKeys: shards}, false},
		{"not a number", Config{Rate: math.NaN(), Burst: 1, MaxKeys: shards}, false},
		{"infinite", Config{Rate: math.Inf(1), Burst: 1, MaxKeys: shards}, false},
		{"too fast", Config{Rate: maxRate + 1, Burst: 1, MaxKeys: shards}, false},
		{"no burst", Config{Rate: 5, MaxKeys: shards}, false},
		{"too large burst", Config{Rate: maxRate, Burst: maxBurst + 1, MaxKeys: shards}, false},
		{"too slow", Config{Rate: 1.0 / 86400, Burst: 2, MaxKeys: shards}, false},
		{"no keys", Config{Rate: 5, Burst: 10}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewLocal(tt.cfg)
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, like.ErrInvalid) {
				t.Fatalf("NewLocal: %v, want ok %v", err, tt.ok)
			}
		})
	}
}

// TestBurstThenRefusal is scenario B35 at the level of the limiter.
func TestBurstThenRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustLocal(t, DefaultUser())
		for i := range 50 {
			d := allow(t, l, "u1")
			want := Decision{OK: true, Limit: 10, Window: 2, Remaining: 9 - i, Reset: (i + 5) / 5}
			if i >= 10 {
				want = Decision{Limit: 10, Window: 2, RetryAfter: 1, Reset: 2}
			}
			if diff := cmp.Diff(want, d); diff != "" {
				t.Fatalf("request %d (-want +got):\n%s", i, diff)
			}
		}
		if d := allow(t, l, "u2"); !d.OK {
			t.Fatalf("another key is refused: %+v", d)
		}
		time.Sleep(time.Second)
		for i := range 6 {
			if d := allow(t, l, "u1"); d.OK != (i < 5) {
				t.Fatalf("request %d after a second: %+v", i, d)
			}
		}
	})
}

func TestRetryAfterIsEnoughAndRoundedUp(t *testing.T) {
	for _, cfg := range []Config{
		{Rate: 5, Burst: 10, MaxKeys: shards},
		{Rate: 1.0 / 7, Burst: 3, MaxKeys: shards},
		{Rate: 3, Burst: 1, MaxKeys: shards},
		{Rate: 0.3, Burst: 2, MaxKeys: shards},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := mustLocal(t, cfg)
			d := allow(t, l, "k")
			for d.OK {
				d = allow(t, l, "k")
			}
			if want := int(math.Ceil(1 / cfg.Rate)); d.RetryAfter != want {
				t.Fatalf("rate %v: RetryAfter %d, want %d", cfg.Rate, d.RetryAfter, want)
			}
			time.Sleep(time.Duration(d.RetryAfter) * time.Second)
			if d := allow(t, l, "k"); !d.OK {
				t.Fatalf("rate %v: refused after the announced wait: %+v", cfg.Rate, d)
			}
		})
	}
}

func TestOff(t *testing.T) {
	l := mustLocal(t, Config{})
	for range 1000 {
		if d := allow(t, l, "k"); d != (Decision{OK: true}) {
			t.Fatalf("%+v", d)
		}
	}
}

// TestModel compares random traffic with one exact bucket per key that is never
// forgotten: neither idle keys nor a change of generation may give a free token.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		l := mustLocal(t, Config{Rate: 5, Burst: 10, MaxKeys: 64 * shards})
		start := time.Now()
		model := map[string]time.Duration{}
		for range 2_000 {
			key := fmt.Sprint(r.IntN(30))
			for range r.IntN(15) {
				full, want := l.bucket.Take(model[key], time.Since(start))
				model[key] = full
				if seen, err := l.Peek(t.Context(), key); err != nil || seen != want {
					t.Fatalf("peek at key %s after %v: %+v, error %v; want %+v", key, time.Since(start), seen, err, want)
				}
				if diff := cmp.Diff(want, allow(t, l, key)); diff != "" {
					t.Fatalf("key %s after %v (-want +got):\n%s", key, time.Since(start), diff)
				}
			}
			time.Sleep(time.Duration(r.ExpFloat64() * float64(50*time.Millisecond)))
			if r.IntN(100) == 0 {
				time.Sleep(time.Duration(r.Int64N(int64(5 * time.Second))))
			}
		}
	})
}

// TestForgettingGivesNoToken empties a bucket, keeps its shard busy with another
// key and comes back just before the bucket is full.
func TestForgettingGivesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustLocal(t, Config{Rate: 5, Burst: 10, MaxKeys: 64 * shards})
		shardOf := func(key string) uint64 { return maphash.String(l.seed, key) % shards }
		other := "0"
		for i := 1; shardOf(other) != shardOf("k"); i++ {
			other = fmt.Sprint(i)
		}
		for gap := 200 * time.Millisecond; gap < 2*time.Second; gap += 10 * time.Millisecond {
			for allow(t, l, "k").OK {
			}
			emptied := time.Now()
			for time.Since(emptied) < gap {
				time.Sleep(10 * time.Millisecond)
				allow(t, l, other)
			}
			// Less than one token may have been in the bucket when it refused.
			if d, most := allow(t, l, "k"), int(gap/(200*time.Millisecond)); d.Remaining > most {
				t.Fatalf("%d tokens left %v after the bucket was empty", d.Remaining, gap)
			}
			time.Sleep(70 * time.Millisecond)
		}
	})
}

func TestKeysAreBoundedWithoutAFreeRide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustLocal(t, Config{Rate: 5, Burst: 10, MaxKeys: 10 * shards})
		for !allow(t, l, "known").OK {
			t.Fatal("first request refused")
		}
		accepted := 0
		for i := range 100_000 {
			if allow(t, l, fmt.Sprint(i)).OK {
				accepted++
			}
		}
		// 160 keys with a bucket of their own, and 10 requests on each spare one.
		if limit := 10*shards + 10*shards; accepted > limit {
			t.Errorf("%d new keys accepted, want at most %d", accepted, limit)
		}
		kept := 0
		for i := range l.shards {
			kept += len(l.shards[i].young) + len(l.shards[i].old)
		}
		if kept > 10*shards {
			t.Errorf("%d keys kept, want at most %d", kept, 10*shards)
		}
		for i := range 12 {
			if d := allow(t, l, "known"); d.OK != (i < 9) {
				t.Errorf("request %d of a known key under a flood: %+v", i+2, d)
			}
		}
		time.Sleep(4 * time.Second)
		for i := range 5 {
			if d := allow(t, l, fmt.Sprint("later", i)); d.Remaining != 9 {
				t.Errorf("new key after the flood has no bucket of its own: %+v", d)
			}
		}
	})
}

func TestIdleKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustLocal(t, DefaultUser())
		for i := range 1000 {
			allow(t, l, fmt.Sprint(i))
		}
		time.Sleep(4 * time.Second)
		kept := 0
		for i := range l.shards {
			s := &l.shards[i]
			s.turn(time.Since(l.start), l.bucket.Window())
			kept += len(s.young) + len(s.old)
		}
		if kept != 0 {
			t.Fatalf("%d idle keys kept", kept)
		}
	})
}

// TestMonotonic: all times are differences to start, so they are monotonic as
// long as start has not lost its monotonic reading.
func TestMonotonic(t *testing.T) {
	l := mustLocal(t, DefaultUser())
	if l.start == l.start.Round(0) {
		t.Fatal("start is a wall time: a clock step would move every bucket")
	}
}

func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustLocal(t, DefaultUser())
		var accepted atomic.Int64
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if allow(t, l, "k").OK {
					accepted.Add(1)
				}
			})
		}
		wg.Wait()
		if n := accepted.Load(); n != 10 {
			t.Fatalf("%d accepted at one moment, want 10", n)
		}
	})
}

func TestWriteHeader(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    Decision
		want http.Header
	}{
		{"off", Decision{OK: true}, http.Header{}},
		{"accepted", Decision{OK: true, Limit: 10, Window: 2, Remaining: 7, Reset: 1}, http.Header{
			"Ratelimit-Policy": {`"user";q=10;w=2`},
			"Ratelimit":        {`"user";r=7;t=1`},
		}},
		{"refused", Decision{Limit: 10, Window: 2, RetryAfter: 1, Reset: 2}, http.Header{
			"Ratelimit-Policy": {`"user";q=10;w=2`},
			"Ratelimit":        {`"user";r=0;t=2`},
			"Retry-After":      {"1"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			tt.d.WriteHeader(h, "user")
			if diff := cmp.Diff(tt.want, h); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkAllow(b *testing.B) {
	keys := make([]string, 1<<16)
	for i := range keys {
		keys[i] = fmt.Sprint("user-", i)
	}
	l := mustLocal(b, DefaultUser())
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Allow(b.Context(), keys[i%len(keys)])
	}
}

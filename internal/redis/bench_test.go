package redis

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"likewise/internal/counts"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/internal/limit"
	"likewise/test/servers"
)

func benchOnBoth(b *testing.B, bench func(b *testing.B, r *servers.RedisServer)) {
	b.Run("one", func(b *testing.B) { bench(b, servers.Redis(b)) })
	b.Run("cluster", func(b *testing.B) { bench(b, servers.RedisCluster(b)) })
}

func filled(b *testing.B, r *servers.RedisServer, n int) *Client {
	cfg := settings(r.URL())
	cfg.TTL = time.Hour
	c := connect(b, cfg)
	totals := make([]like.Total, n)
	for i := range totals {
		totals[i] = total(i, int64(i), 7)
	}
	store(c, totals...)
	return c
}

// BenchmarkPage20FromRedis is a page that misses in the process, beside the bare
// reads of one server.
func BenchmarkPage20FromRedis(b *testing.B) {
	benchOnBoth(b, func(b *testing.B, r *servers.RedisServer) {
		c := filled(b, r, 20)
		items := posts(20)
		b.Run("get", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Get(b.Context(), items)
			}
		})
		b.Run("get/parallel", func(b *testing.B) {
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c.Get(b.Context(), items)
				}
			})
		})
		l := memory.New(memory.Config{})
		defer l.Close()
		b.Run("page", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cold := counts.New(l, c, counts.Config{Items: 100, RefreshAfter: 1e9, ExpireAfter: 1e9, LoadTimeout: 1e9, MaxLoads: 1}, nil)
				if _, err := cold.Page(b.Context(), "", items); err != nil {
					b.Fatal(err)
				}
			}
		})
		if len(r.Addresses()) > 1 {
			return
		}
		keys := make([]string, len(items))
		for i, item := range items {
			keys[i] = c.totalKey(item)
		}
		bare := admin(b, r)
		b.Run("bare MGET", func(b *testing.B) {
			for b.Loop() {
				if err := bare.Do(b.Context(), bare.B().Mget().Key(keys...).Build()).Error(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("bare GETs", func(b *testing.B) {
			for b.Loop() {
				commands := make(rueidis.Commands, len(keys))
				for i, key := range keys {
					commands[i] = bare.B().Get().Key(key).Build()
				}
				for _, result := range bare.DoMulti(b.Context(), commands...) {
					if err := result.Error(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	})
}

func BenchmarkAllow(b *testing.B) {
	benchOnBoth(b, func(b *testing.B, r *servers.RedisServer) {
		l := mustLimiter(b, connect(b, settings(r.URL())), "user", limit.DefaultUser())
		b.Run("alone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				allow(b, l, "u1")
			}
		})
		b.Run("parallel", func(b *testing.B) {
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					allow(b, l, "u1")
				}
			})
		})
	})
}

// BenchmarkPut256 is a batch of totals that another node put already.
func BenchmarkPut256(b *testing.B) {
	benchOnBoth(b, func(b *testing.B, r *servers.RedisServer) {
		c := filled(b, r, maxBatch)
		totals := make([]like.Total, maxBatch)
		for i := range totals {
			totals[i] = total(i, int64(i), 7)
		}
		for b.Loop() {
			store(c, totals...)
		}
	})
}

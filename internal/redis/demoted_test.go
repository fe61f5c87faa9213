package redis

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"

	"likewise/internal/limit"
	"likewise/test/harness"
	"likewise/test/servers"
)

// TestDemoted switches to another primary behind a name, as one does for upgrades.
// The former one lives on, keeps its connections and answers reads.
func TestDemoted(t *testing.T) {
	for what, demote := range map[string]func(old, primary *servers.RedisServer){
		"read-only": func(old, primary *servers.RedisServer) {
			host, port, _ := net.SplitHostPort(primary.Addresses()[0])
			ask(t, admin(t, old), "REPLICAOF", host, port)
		},
		"without its primary": func(old, _ *servers.RedisServer) {
			redis := admin(t, old)
			ask(t, redis, "CONFIG", "SET", "replica-serve-stale-data", "no")
			ask(t, redis, "REPLICAOF", "127.0.0.1", "1")
		},
	} {
		t.Run(what, func(t *testing.T) {
			old, primary := servers.Redis(t), servers.Redis(t)
			c, lead, dials := openNamed(t, old.Addresses()[0])
			l := mustLimiter(t, c, "user", slowly)
			feed := subscribe(t, c, silent{})
			eventually(t, "Redis works", func() bool { return works(t, c, 1) && c.Ready(t.Context()) == nil })

			demote(old, primary)
			eventually(t, "the breaker opens", func() bool {
				get(t, c, post(1)) // answered by a replica, which hides nothing
				store(c, total(1, 1, 2))
				return c.Ready(t.Context()) != nil
			})
			if d := allow(t, l, "u1"); !d.OK {
				t.Errorf("a like on the demoted server is %+v", d)
			}
			before := dials.Load()
			eventually(t, "it looks where the name leads", func() bool {
				if c.Ready(t.Context()) == nil {
					t.Fatal("a server that refuses writes passes the probe")
				}
				return dials.Load() >= before+2
			})
			lead(primary.Addresses()[0])
			eventually(t, "the new primary works", func() bool { return works(t, c, 3) && c.Ready(t.Context()) == nil })

			other := connect(t, settings(primary.URL()))
			feed.sees(other, 1<<20)
			allowed, both := 0, []*Limiter{l, mustLimiter(t, other, "user", slowly)}
			for i := range 3 * slowly.Burst {
				if allow(t, both[i%2], "u2").OK {
					allowed++
				}
			}
			if allowed != slowly.Burst {
				t.Errorf("%d requests were allowed on two nodes, want %d", allowed, slowly.Burst)
			}
		})
	}
}

// openNamed opens a client whose new connections lead where lead says last.
func openNamed(t *testing.T, address string) (c *Client, lead func(address string), dials *atomic.Int64) {
	var at atomic.Value
	dials = new(atomic.Int64)
	at.Store(address)
	cfg := hurried("redis://" + address)
	option, err := cfg.options()
	if err != nil {
		t.Fatal(err)
	}
	option.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		dials.Add(1)
		return d.DialContext(ctx, "tcp", at.Load().(string))
	}
	c = open(cfg, option, quiet(t), nil)
	t.Cleanup(func() { c.Close() })
	return c, func(address string) { at.Store(address) }, dials
}

// TestSwitchInACluster has a replica take over from a primary that lives on.
func TestSwitchInACluster(t *testing.T) {
	harness.SkipUnlessHeavy(t, "a Redis Cluster takes seconds to form")
	r := servers.RedisCluster(t, servers.WithReplicas)
	c := connect(t, hurried(r.URL()))
	other := connect(t, hurried(r.URL()))
	feed := subscribe(t, other, silent{})
	eventually(t, "Redis works", func() bool { return works(t, c, 1) })
	replica, err := nodeClient(r.Addresses()[3])
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Close()
	ask(t, replica, "CLUSTER", "FAILOVER")
	eventually(t, "the replica took over", func() bool {
		role := must(t, replica, "ROLE")
		who, err := role.ToArray()
		if err != nil {
			t.Fatal(err)
		}
		is, err := who[0].ToString()
		return err == nil && is == "master"
	})
	eventually(t, "Redis works again", func() bool { return works(t, c, 2) && c.Ready(t.Context()) == nil })
	feed.sees(c, 1<<20)
}

// TestFull refuses every write for want of memory. What it has can be read.
func TestFull(t *testing.T) {
	r := servers.Redis(t, servers.With("maxmemory-policy", "noeviction"))
	c := connect(t, settings(r.URL()))
	l := mustLimiter(t, c, "user", limit.DefaultUser())
	store(c, total(1, 7, 1))
	ask(t, admin(t, r), "CONFIG", "SET", "maxmemory", "1")
	for range 2 * tolerated {
		store(c, total(1, 8, 2))
		allow(t, l, "u1")
	}
	if put, limit := value(t, c.metrics.put.failed), value(t, c.metrics.limit.failed); put != 2*tolerated || limit != 2*tolerated {
		t.Errorf("%v writes and %v decisions are counted as failed, want %d of each", put, limit, 2*tolerated)
	}
	if got, known := get(t, c, post(1)); !known || got.Count != 7 || c.Ready(t.Context()) != nil {
		t.Errorf("a full Redis is not read: %+v, %v", got, c.Ready(t.Context()))
	}
	c.breaker.trip(setOf(0))
	eventually(t, "a full Redis passes the probe", func() bool { return c.Ready(t.Context()) == nil })
}

package redis

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"likewise/internal/like"
	"likewise/test/servers"
)

// store writes totals and waits for it.
func store(c *Client, totals ...like.Total) {
	batch := make([]offer, len(totals))
	for i, t := range totals {
		batch[i].total = t
	}
	c.store(batch)
}

func testTotalsAreCached(t *testing.T, r *servers.RedisServer) {
	a, b := connect(t, settings(r.URL())), connect(t, settings(r.URL()))
	a.Put([]like.Total{total(1, 10, 1), total(2, 0, 0), {Item: like.Item{Collection: "games", ID: "1"}, Count: 3, Version: 9}})
	items := []like.Item{post(2), {Collection: "games", ID: "1"}, post(3), post(1), post(2)}
	var totals []like.Total
	var known []bool
	eventually(t, "what one node puts another gets", func() bool {
		totals, known = b.Get(t.Context(), items)
		return slices.Equal(known, []bool{true, true, false, true, true})
	})
	for i, want := range []like.Total{{Item: post(2)}, {Item: items[1], Count: 3, Version: 9}, {}, total(1, 10, 1), {Item: post(2)}} {
		if known[i] && totals[i] != want {
			t.Errorf("place %d: %+v, want %+v", i, totals[i], want)
		}
	}
}

// testNewestTotalWins writes the versions of one item from several nodes in a
// random order: a reader never sees one that is older than one before (drill 37).
func testNewestTotalWins(t *testing.T, r *servers.RedisServer) {
	const versions = 300
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var writers, reader sync.WaitGroup
	var done atomic.Bool
	for w := range uint64(3) {
		c := connect(t, settings(r.URL()))
		writers.Go(func() {
			for _, v := range rand.New(rand.NewPCG(seed, w)).Perm(versions) {
				store(c, total(1, int64(v)*10, uint64(v)+1<<53)) // beyond the integers of Lua
			}
		})
	}
	c := connect(t, settings(r.URL()))
	reader.Go(func() {
		for last := uint64(0); !done.Load(); {
			got, ok := get(t, c, post(1))
			if ok && got.Version < last || ok && got.Count != int64(got.Version-1<<53)*10 || !ok && last != 0 {
				t.Errorf("%+v, %v after version %d", got, ok, last)
				return
			}
			last = got.Version
		}
	})
	writers.Wait()
	done.Store(true)
	reader.Wait()
	if got, ok := get(t, c, post(1)); !ok || got.Version != versions-1+1<<53 {
		t.Errorf("%+v, %v; want the newest version", got, ok)
	}
}

func TestConfirmedTotalLivesOn(t *testing.T) {
	r := servers.Redis(t)
	c, redis := connect(t, settings(r.URL())), admin(t, r)
	key := c.totalKey(post(1))
	left := func() time.Duration {
		ms := must(t, redis, "PTTL", key)
		n, err := ms.AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(n) * time.Millisecond
	}
	ttl := c.cfg.TTL
	for _, step := range []struct {
		write   uint64
		renewed bool
	}{{5, true}, {5, true}, {4, false}, {6, true}} {
		must(t, redis, "PEXPIRE", key, "3000")
		store(c, total(1, 1, step.write))
		if got := left(); (got > ttl*4/5) != step.renewed || got > ttl {
			t.Errorf("after a write of version %d the total has %s to live, renewed: want %v", step.write, got, step.renewed)
		}
	}
	if got, _ := get(t, c, post(1)); got.Version != 6 {
		t.Errorf("%+v, want version 6", got)
	}
}

func TestTotalThatNobodyConfirmsGoesAway(t *testing.T) {
	r := servers.Redis(t)
	cfg := settings(r.URL())
	cfg.TTL = 50 * time.Millisecond
	c := connect(t, cfg)
	store(c, total(1, 1, 1))
	eventually(t, "it is gone", func() bool { _, ok := get(t, c, post(1)); return !ok })
}

func testWhatDoesNotParseIsAMiss(t *testing.T, r *servers.RedisServer) {
	c, redis := connect(t, settings(r.URL())), admin(t, r)
	for i, set := range [][]string{
		{"SET", "", "7"},
		{"SET", "", "99999999999999999999.1"},
		{"SET", "", "00000000000000000009.1.1"},
		{"SET", "", "999999999999999999999.1"},
		{"RPUSH", "", "00000000000000000009.1"},
		{"SET", "", ""},
	} {
		set[1] = c.totalKey(post(i))
		must(t, redis, set...)
		if got, ok := get(t, c, post(i)); ok {
			t.Errorf("%q is read as %+v", set, got)
		}
		if set[2] == "99999999999999999999.1" {
			must(t, redis, "DEL", set[1]) // stays until its time is over
		}
		store(c, total(i, 5, 1))
		if got, ok := get(t, c, post(i)); !ok || got.Count != 5 {
			t.Errorf("%q was not replaced by a total: %+v, %v", set, got, ok)
		}
	}
	if got := value(t, c.metrics.malformed); got != 5 {
		t.Errorf("%v values counted that did not parse, want 5", got)
	}
	if c.Ready(t.Context()) != nil {
		t.Error("Redis was taken for dead")
	}
}

// testLostScriptsAndKeys empties all nodes of scripts and keys.
func testLostScriptsAndKeys(t *testing.T, r *servers.RedisServer) {
	c, redis := connect(t, settings(r.URL())), admin(t, r)
	totals := make([]like.Total, 100)
	for i := range totals {
		totals[i] = total(i, int64(i), 7)
	}
	for range 2 {
		for _, node := range redis.Nodes() {
			must(t, node, "SCRIPT", "FLUSH")
		}
		r.FlushAll(t)
		if _, ok := get(t, c, post(1)); ok {
			t.Error("a total outlived FLUSHALL")
		}
		store(c, totals...)
		got, known := c.Get(t.Context(), posts(len(totals)))
		if slices.Contains(known, false) || !slices.Equal(got, totals) {
			t.Errorf("after the loss: %v, %v", got, known)
		}
	}
}

// TestEviction fills a small Redis: what is read is right or absent.
func TestEviction(t *testing.T) {
	for policy, evicts := range map[string]bool{"allkeys-lru": true, "noeviction": false} {
		t.Run(policy, func(t *testing.T) {
			r := servers.Redis(t, servers.With("maxmemory", "3mb"), servers.With("maxmemory-policy", policy))
			c := connect(t, settings(r.URL()))
			const items = 30_000
			for i := 0; i < items; i += 500 {
				batch := make([]like.Total, 500)
				for k := range batch {
					batch[k] = total(i+k, int64(i+k), uint64(i+k)+1)
				}
				store(c, batch...)
			}
			found := 0
			for i := 0; i < items; i += 500 {
				page := make([]like.Item, 500)
				for k := range page {
					page[k] = post(i + k)
				}
				totals, known := c.Get(t.Context(), page)
				for k, ok := range known {
					if !ok {
						continue
					}
					found++
					if totals[k] != total(i+k, int64(i+k), uint64(i+k)+1) {
						t.Fatalf("%v is %+v", page[k], totals[k])
					}
				}
			}
			t.Logf("%d of %d totals are there", found, items)
			if found == 0 || found == items {
				t.Error("nothing was evicted or refused, or everything")
			}
			if c.Ready(t.Context()) != nil {
				t.Error("a full Redis was taken for dead")
			}
			written := 0 // buffers that were freed may have made room for some
			for more := true; more && written <= items/10; {
				store(c, total(items+written, 1, 1))
				if _, more = get(t, c, post(items+written)); more {
					written++
				}
			}
			if all := written > items/10; all != evicts {
				t.Errorf("%d new totals are there; want them all: %v", written, evicts)
			}
		})
	}
}

func TestInstallationsAreApart(t *testing.T) {
	r := servers.Redis(t)
	one, other := settings(r.URL()), settings(r.URL())
	other.Prefix = "staging"
	a, b := connect(t, one), connect(t, other)
	store(a, total(1, 1, 9))
	if got, ok := get(t, b, post(1)); ok {
		t.Errorf("another installation sees %+v", got)
	}
}

// flushes counts what is written to connections: with one call under way, a write
// is a round trip.
type flushes struct {
	net.Conn
	count *atomic.Int64
}

func (f flushes) Write(b []byte) (int, error) {
	f.count.Add(1)
	return f.Conn.Write(b)
}

// testPageIsOneRoundTrip also asks the servers how many commands came.
func testPageIsOneRoundTrip(t *testing.T, r *servers.RedisServer) {
	nodes := len(r.Addresses())
	var count atomic.Int64
	cfg := settings(r.URL())
	option, err := cfg.options()
	if err != nil {
		t.Fatal(err)
	}
	option.Dialer.KeepAlive = time.Hour // no pings
	option.ClusterOption.ShardsRefreshInterval = 0
	option.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", addr)
		return flushes{conn, &count}, err
	}
	c := open(cfg, option, quiet(t), nil)
	defer c.Close()
	eventually(t, "Redis answers", func() bool { return c.Ready(t.Context()) == nil })
	redis := admin(t, r)
	items := posts(20)
	c.Get(t.Context(), items) // connects
	store(c, total(1, 1, 1))  // brings the script
	commands := calls(t, redis, "get")

	count.Store(0)
	if _, known := c.Get(t.Context(), items); !known[1] {
		t.Fatal("nothing was read")
	}
	if got := count.Load(); got != int64(nodes) {
		t.Errorf("a page was %d writes, want one to each of %d nodes", got, nodes)
	}
	if got := calls(t, redis, "get") - commands; got != len(items) {
		t.Errorf("a page was %d reads, want %d", got, len(items))
	}
	count.Store(0)
	store(c, total(1, 2, 2))
	if got := count.Load(); got != 1 {
		t.Errorf("setting a total was %d writes, want 1", got)
	}
}

// calls returns how often a command was run, on all nodes.
func calls(t *testing.T, redis rueidis.Client, command string) (sum int) {
	t.Helper()
	for _, node := range redis.Nodes() {
		info := must(t, node, "INFO", "commandstats")
		text, err := info.ToString()
		if err != nil {
			t.Fatal(err)
		}
		if _, behind, ok := strings.Cut(text, "cmdstat_"+command+":calls="); ok {
			digits, _, _ := strings.Cut(behind, ",")
			n, err := strconv.Atoi(digits)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

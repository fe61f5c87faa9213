package servers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"likewise/test/harness"
	"likewise/test/servers"
)

func redisClient(t *testing.T, addresses []string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addresses, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func write(t *testing.T, c rueidis.Client, key string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	return c.Do(ctx, c.B().Set().Key(key).Value("1").Build()).Error()
}

// holds reports whether Redis has a key.
func holds(t *testing.T, c rueidis.Client, key string) bool {
	t.Helper()
	err := c.Do(t.Context(), c.B().Get().Key(key).Build()).Error()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestRedis(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t, servers.With("maxmemory", "10mb"), servers.With("maxmemory-policy", "allkeys-lfu"))
	c := redisClient(t, r.Addresses())
	set, err := c.Do(t.Context(), c.B().ConfigGet().Parameter("maxmemory*").Build()).AsStrMap()
	if err != nil || set["maxmemory"] != "10485760" || set["maxmemory-policy"] != "allkeys-lfu" {
		t.Errorf("settings are %v, %v", set, err)
	}
	for _, empty := range []func(){
		func() { r.FlushAll(t) },
		func() { r.Kill(t, 0); r.Start(t, 0) },
	} {
		eventually(t, "a key is written", func() bool { return write(t, c, "a") == nil })
		if empty(); holds(t, c, "a") {
			t.Error("a key is still there")
		}
	}
	r.Freeze(t, 0)
	if err := write(t, c, "a"); err == nil {
		t.Error("a frozen server answered")
	}
	r.Thaw(t, 0)
	eventually(t, "it answers again", func() bool { return write(t, c, "a") == nil })
}

func TestRedisCluster(t *testing.T) {
	t.Parallel()
	r := servers.RedisCluster(t)
	if n := len(r.Addresses()); n != 3 || r.URL() != "redis://"+strings.Join(r.Addresses(), ",") {
		t.Errorf("%d nodes at %s", n, r.URL())
	}
	c := redisClient(t, r.Addresses())
	written := func() bool { // in the slots of different primaries
		return errors.Join(write(t, c, "a"), write(t, c, "b"), write(t, c, "c")) == nil
	}
	eventually(t, "keys are written", written)
	if n := len(c.Nodes()); n != 3 {
		t.Errorf("the client found %d nodes, want 3", n)
	}
	r.FlushAll(t)
	if holds(t, c, "a") || holds(t, c, "b") || holds(t, c, "c") {
		t.Error("a key is still there")
	}
	r.Kill(t, 1)
	r.Start(t, 1)
	eventually(t, "all slots are back", written)
}

func TestRedisReplicaTakesOver(t *testing.T) {
	harness.SkipUnlessHeavy(t, "a failover takes seconds")
	r := servers.RedisCluster(t, servers.WithReplicas)
	c := redisClient(t, r.Addresses())
	for i := range 3 {
		r.Kill(t, i)
		eventually(t, "the replica takes over", func() bool {
			return errors.Join(write(t, c, "a"), write(t, c, "b"), write(t, c, "c")) == nil
		})
		r.Start(t, i)
		back, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: r.Addresses()[i : i+1], ForceSingleClient: true, DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the old primary follows", func() bool {
			info, err := back.Do(t.Context(), back.B().Info().Section("replication").Build()).ToString()
			return err == nil && strings.Contains(info, "master_link_status:up")
		})
		back.Close()
	}
}

package servers_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"

	"likewise/test/servers"
)

func dial(t *testing.T, addresses []string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addresses, DisableCache: true, ConnWriteTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestRedis(t *testing.T) {
	r := servers.Redis(t, servers.With("maxmemory", "10mb"), servers.With("maxmemory-policy", "allkeys-lfu"))
	c := dial(t, r.Addresses())
	if err := c.Do(t.Context(), c.B().Set().Key("a").Value("1").Build()).Error(); err != nil {
		t.Fatal(err)
	}
}

func TestRedisCluster(t *testing.T) {
	r := servers.RedisCluster(t)
	c := dial(t, r.Addresses())
	if err := c.Do(t.Context(), c.B().Set().Key("a").Value("1").Build()).Error(); err != nil {
		t.Fatal(err)
	}
}

func TestRedisClusterReplicas(t *testing.T) {
	r := servers.RedisCluster(t, servers.WithReplicas)
	c := dial(t, r.Addresses())
	if err := c.Do(t.Context(), c.B().Set().Key("a").Value("1").Build()).Error(); err != nil {
		t.Fatal(err)
	}
}

func TestPostgresReplica(t *testing.T) {
	servers.Postgres(t, servers.WithReplicas)
}

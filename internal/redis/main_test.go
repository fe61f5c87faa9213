package redis

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/rueidis"

	"likewise/internal/like"
	"likewise/test/harness"
	"likewise/test/servers"
)

func TestMain(m *testing.M) { harness.MainWithoutLeaks(m) }

// TestOne and TestCluster run the tests that need a Redis and do it no harm, all on
// the same one.
func TestOne(t *testing.T) { runAll(t, servers.Redis(t)) }

func TestCluster(t *testing.T) {
	harness.SkipUnlessHeavy(t, "a Redis Cluster takes seconds to form")
	runAll(t, servers.RedisCluster(t))
}

func runAll(t *testing.T, r *servers.RedisServer) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *servers.RedisServer)
	}{
		{"totals are cached", testTotalsAreCached},
		{"newest total wins", testNewestTotalWins},
		{"what does not parse is a miss", testWhatDoesNotParseIsAMiss},
		{"lost scripts and keys", testLostScriptsAndKeys},
		{"page is one round trip", testPageIsOneRoundTrip},
		{"changes reach other nodes", testChangesReachOtherNodes},
		{"changes in any order", testChangesInAnyOrder},
		{"malformed messages", testMalformedMessages},
		{"close writes what was offered", testCloseWritesWhatWasOffered},
		{"only what nobody told is written", testOnlyWhatNobodyToldIsWritten},
		{"limit of one user", testLimitOfOneUser},
		{"one limit on all nodes", testOneLimitOnAllNodes},
		{"limit and clocks", testLimitAndClocks},
		{"limits without scripts", testLimitsWithoutScripts},
	} {
		r.FlushAll(t)
		t.Run(test.name, func(t *testing.T) { test.run(t, r) })
	}
}

// settings are those of a test: patient, because its machine may be busy.
func settings(url string) Config {
	cfg := DefaultConfig()
	cfg.URL, cfg.Timeout = url, time.Second
	return cfg
}

// connect opens a client for the test and waits until Redis answers.
func connect(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := Open(cfg, quiet(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "Redis answers", func() bool { return c.Ready(t.Context()) == nil })
	return c
}

// quiet logs to the test.
func quiet(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// eventually polls until what is true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// admin is a connection of the test to Redis.
func admin(t testing.TB, r *servers.RedisServer) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: r.Addresses(), DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// nodeClient is a connection of the test to one node.
func nodeClient(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true})
}

// must runs one command.
func must(t testing.TB, c rueidis.Client, command ...string) rueidis.RedisMessage {
	t.Helper()
	var key []string
	if len(command) > 1 {
		key = command[1:2]
	}
	b := c.B().Arbitrary(command[0]).Keys(key...)
	if len(command) > 2 {
		b = b.Args(command[2:]...)
	}
	m, err := c.Do(t.Context(), b.Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", command, err)
	}
	return m
}

// ask sends one command without keys to a node.
func ask(t testing.TB, node rueidis.Client, command ...string) string {
	t.Helper()
	text, err := node.Do(t.Context(), node.B().Arbitrary(command...).Build()).ToString()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return text
}

func post(n int) like.Item { return like.Item{Collection: "posts", ID: fmt.Sprint(n)} }

func posts(n int) []like.Item {
	items := make([]like.Item, n)
	for i := range items {
		items[i] = post(i)
	}
	return items
}

func total(n int, count int64, version uint64) like.Total {
	return like.Total{Item: post(n), Count: count, Version: version}
}

// get returns what the cache has of one item.
func get(t testing.TB, c *Client, item like.Item) (like.Total, bool) {
	t.Helper()
	totals, known := c.Get(t.Context(), []like.Item{item})
	return totals[0], known[0]
}

// background runs fn until the test ends. What was begun later is ended first: the
// context of the test would end a bus before those who follow it.
func background(t testing.TB, fn func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- fn(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(stop)
	return stop
}

// value reads a counter.
func value(t testing.TB, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

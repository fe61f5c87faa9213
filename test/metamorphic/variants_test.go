package metamorphic

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"likewise/internal/counts"
	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/ledger/pebble"
	"likewise/internal/ledger/postgres"
	"likewise/internal/like"
	"likewise/internal/redis"
	"likewise/test/servers"
)

// settle is how long totals and caches may take to show everything.
const settle = 20 * time.Second

// specification is the ledger that all others are compared with.
func specification(t *testing.T) variant {
	return variant{[]node{{Ledger: closing(t, memory.New(memory.Config{}))}}, oneByOne, settle}
}

// setup opens the nodes of a variant.
type setup struct {
	name  string
	sends delivery
	open  func(t *testing.T) []node
}

func setups() []setup {
	return []setup{
		{"memory, late totals, cache", atOnce, func(t *testing.T) []node {
			l := closing(t, memory.New(memory.Config{Lag: 50 * time.Millisecond}))
			return []node{cached(t, l, nil, l)}
		}},
		{"pebble", oneByOne, func(t *testing.T) []node { return []node{{Ledger: openPebble(t)}} }},
		{"pebble, cache", atOnce, func(t *testing.T) []node {
			l := openPebble(t)
			return []node{cached(t, l, nil, l)}
		}},
		{"postgres", inBatches, shape{nodes: 1, shards: 1, drain: 10 * time.Millisecond}.open},
		{"postgres, slow batches and drains, cache", atOnce, shape{
			nodes: 1, shards: 1, wait: 5 * time.Millisecond, drain: 300 * time.Millisecond, cache: true,
		}.open},
		{"postgres, 3 nodes, cache", inBatches, shape{
			nodes: 3, shards: 1, wait: time.Millisecond, drain: 50 * time.Millisecond, cache: true,
		}.open},
		{"postgres, 3 nodes, Redis", atOnce, shape{
			nodes: 3, shards: 1, drain: 10 * time.Millisecond, cache: true, redis: true,
		}.open},
		{"postgres, 3 nodes of 3 databases, Redis", oneByOne, shape{
			nodes: 3, shards: 3, drain: 100 * time.Millisecond, cache: true, redis: true,
		}.open},
	}
}

func openPebble(t *testing.T) ledger.Ledger {
	t.Helper()
	cfg := pebble.DefaultConfig()
	cfg.Dir = t.TempDir() + "/ledger"
	cfg.QueueAge = time.Minute // a loaded machine is not an overloaded ledger
	l, err := pebble.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, l)
}

// shape is a deployment over PostgreSQL.
type shape struct {
	nodes, shards int
	wait, drain   time.Duration
	cache, redis  bool
}

func (s shape) open(t *testing.T) []node {
	cfg := postgres.DefaultConfig()
	cfg.BatchWait, cfg.DrainInterval, cfg.QueueAge = s.wait, s.drain, time.Minute
	for range s.shards {
		cfg.URLs = append(cfg.URLs, servers.Database(t))
	}
	var cache string
	if s.redis {
		cache = servers.Redis(t).URL()
	}
	nodes := make([]node, s.nodes)
	for k := range nodes {
		var shared *redis.Client
		if s.redis {
			shared = connect(t, cache)
			cfg.OnDrain = shared.Publish
		}
		l, err := postgres.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		nodes[k].Ledger = closing(t, l)
		switch {
		case s.redis:
			bus := redis.NewBus(shared, l)
			background(t, bus.Run)
			nodes[k] = cached(t, l, shared, bus)
		case s.cache:
			nodes[k] = cached(t, l, nil, l)
		}
	}
	return nodes
}

func connect(t *testing.T, url string) *redis.Client {
	t.Helper()
	cfg := redis.DefaultConfig()
	cfg.URL, cfg.Timeout = url, time.Second
	c, err := redis.Open(cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, c)
}

// cached puts a small cache in front of a ledger, which forgets much.
func cached(t *testing.T, l ledger.Ledger, shared counts.Shared, feed ledger.Feeder) node {
	cfg := counts.DefaultConfig()
	cfg.Items, cfg.LoadTimeout = 16, 20*time.Second
	c := counts.New(l, shared, cfg, nil)
	background(t, func(ctx context.Context) error { return c.Run(ctx, feed) })
	return node{l, c}
}

// background runs a part of a node until the test ends.
func background(t *testing.T, part func(context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, like.ErrClosed) {
			t.Error(err)
		}
	})
}

// closing closes a part of a node when the test ends.
func closing[T interface{ Close() error }](t *testing.T, part T) T {
	t.Cleanup(func() {
		if err := part.Close(); err != nil {
			t.Error(err)
		}
	})
	return part
}

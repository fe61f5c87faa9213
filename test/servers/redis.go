package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// RedisServer is one Redis server or a cluster of them, which keep nothing on disk.
// Node i has the i-th of [RedisServer.Addresses], over all restarts. Its methods are
// used by one goroutine.
type RedisServer struct {
	nodes []*redisNode
}

type redisNode struct {
	port int
	bus  int // port to the other nodes of a cluster
	proc *process
}

// Redis starts one Redis server for the test, in 100 ms, and stops it when the test
// ends.
func Redis(tb testing.TB, opts ...Option) *RedisServer {
	tb.Helper()
	return redisFor(tb, 1, optionsOf(opts))
}

// RedisCluster starts a Redis Cluster of three primaries for the test, and stops it
// when the test ends. With replicas node i+3 starts as the replica of node i, and
// takes over about 3 s after its primary was killed or frozen.
func RedisCluster(tb testing.TB, opts ...Option) *RedisServer {
	tb.Helper()
	return redisFor(tb, primaries, optionsOf(opts))
}

func redisFor(tb testing.TB, nodes int, o options) *RedisServer {
	tb.Helper()
	h, err := guarded()
	check(tb, err)
	r, err := newRedis(tb.Context(), h, nodes, o)
	check(tb, err)
	tb.Cleanup(func() {
		if err := r.remove(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// Addresses returns host:port of every node.
func (r *RedisServer) Addresses() []string {
	all := make([]string, len(r.nodes))
	for i, n := range r.nodes {
		all[i] = addressOf(n.port)
	}
	return all
}

// URL returns redis:// and the addresses, separated by commas.
func (r *RedisServer) URL() string { return "redis://" + strings.Join(r.Addresses(), ",") }

// Kill kills node i, which loses what it holds.
func (r *RedisServer) Kill(tb testing.TB, i int) {
	tb.Helper()
	check(tb, r.nodes[i].proc.kill(tb.Context()))
}

// Start starts node i again, empty, and waits until it answers. In a cluster it
// comes back as what it was, unless a replica took over: then as its replica.
func (r *RedisServer) Start(tb testing.TB, i int) {
	tb.Helper()
	n := r.nodes[i]
	check(tb, n.proc.start(tb.Context(), n.ready))
}

// Freeze halts node i: connections stay open, and nothing answers. It is thawed
// when the test ends, if not before.
func (r *RedisServer) Freeze(tb testing.TB, i int) {
	tb.Helper()
	_, err := r.nodes[i].proc.freeze()
	check(tb, err)
}

// Thaw lets the frozen node i go on.
func (r *RedisServer) Thaw(tb testing.TB, i int) {
	tb.Helper()
	check(tb, r.nodes[i].proc.thaw())
}

// FlushAll empties every primary that runs.
func (r *RedisServer) FlushAll(tb testing.TB) {
	tb.Helper()
	for _, n := range r.nodes {
		if n.proc.cmd == nil {
			continue
		}
		role, err := n.ask(tb.Context(), "INFO", "replication")
		if err == nil && strings.Contains(role, "role:master") {
			_, err = n.ask(tb.Context(), "FLUSHALL")
		}
		check(tb, err)
	}
}

func newRedis(ctx context.Context, h *home, count int, o options) (*RedisServer, error) {
	if err := supported("redis"); err != nil {
		return nil, err
	}
	path, ok := program("redis-server")
	if !ok {
		return nil, notInstalled("redis", "redis-server")
	}
	if o.replicas {
		count += count
	}
	r := &RedisServer{}
	for i := range count {
		n, err := startRedis(ctx, h, path, count > 1, i, o)
		if err != nil {
			return nil, errors.Join(err, r.remove())
		}
		r.nodes = append(r.nodes, n)
	}
	if count == 1 {
		return r, nil
	}
	if err := r.form(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("form a Redis Cluster: %w", err), r.remove())
	}
	return r, nil
}

func startRedis(ctx context.Context, h *home, path string, cluster bool, i int, o options) (*redisNode, error) {
	dir, err := h.room("redis")
	if err != nil {
		return nil, err
	}
	n := &redisNode{proc: &process{name: "Redis", dir: dir}}
	return n, onFreePort(next(o.port, i), func(port int) error {
		n.port = port
		n.proc.argv = []string{path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"}
		if cluster {
			if n.bus, err = freePort(0); err != nil {
				return err
			}
			n.proc.argv = append(n.proc.argv, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(n.bus), "--cluster-node-timeout", "2000")
		}
		for _, s := range o.settings {
			n.proc.argv = append(n.proc.argv, "--"+s.name, s.value)
		}
		return n.proc.start(ctx, n.ready)
	})
}

// ready asks which process answers on the port: another one may be there.
func (n *redisNode) ready(ctx context.Context) error {
	info, err := n.ask(ctx, "INFO", "server")
	if err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", n.proc.cmd.Process.Pid)) {
		return errors.New("another server answers")
	}
	return err
}

// ask sends one command to the node, over a connection of its own.
func (n *redisNode) ask(ctx context.Context, command ...string) (string, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{addressOf(n.port)},
		ForceSingleClient: true,
		DisableCache:      true,
		DisableRetry:      true,
		ConnWriteTimeout:  5 * time.Second,
	})
	if err != nil {
		return "", err
	}
	defer client.Close()
	answer, err := client.Do(ctx, client.B().Arbitrary(command...).Build()).ToAny()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return fmt.Sprint(answer), nil
}

func (r *RedisServer) remove() error {
	var err error
	for _, n := range r.nodes {
		err = errors.Join(err, n.proc.kill(context.Background()), os.RemoveAll(n.proc.dir))
	}
	return err
}

package redis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"likewise/internal/counts"
	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/test/harness"
	"likewise/test/servers"
)

var _ counts.Shared = (*Client)(nil)

// watched is a ledger that remembers every total it has shown, and how many reads
// of totals are under way.
type watched struct {
	*memory.Ledger
	pause time.Duration // of each read

	mu      sync.Mutex
	shown   map[like.Item]map[uint64]int64
	reading atomic.Int64
	most    atomic.Int64
	reads   atomic.Int64
}

func watch(l *memory.Ledger) *watched {
	return &watched{Ledger: l, shown: map[like.Item]map[uint64]int64{}}
}

func (w *watched) show(totals []like.Total) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range totals {
		if w.shown[t.Item] == nil {
			w.shown[t.Item] = map[uint64]int64{}
		}
		w.shown[t.Item][t.Version] = t.Count
	}
}

// had reports whether the ledger showed this total.
func (w *watched) had(t like.Total) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	count, ok := w.shown[t.Item][t.Version]
	return ok && count == t.Count
}

func (w *watched) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	w.reads.Add(1)
	now := w.reading.Add(1)
	defer w.reading.Add(-1)
	for most := w.most.Load(); now > most && !w.most.CompareAndSwap(most, now); most = w.most.Load() {
	}
	if w.pause > 0 && !sleep(ctx, w.pause) {
		return nil, context.Cause(ctx)
	}
	totals, err := w.Ledger.Totals(ctx, items)
	if err == nil {
		w.show(totals)
	}
	return totals, err
}

func (w *watched) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		for totals, err := range w.Ledger.Feed(ctx) {
			w.show(totals)
			if !yield(totals, err) {
				return
			}
		}
	}
}

// node is one of several over one ledger and one Redis.
type node struct {
	*Client
	counts *counts.Counts
}

// start runs nodes, of which one at random publishes each change, as if it had
// drained it.
func start(t *testing.T, l *watched, cfg Config, reads counts.Config, n int) []node {
	nodes := make([]node, n)
	for i := range nodes {
		c := connect(t, cfg)
		bus := NewBus(c, l)
		nodes[i] = node{c, counts.New(l, c, reads, nil)}
		background(t, bus.Run)
		background(t, func(ctx context.Context) error { return nodes[i].counts.Run(ctx, bus) })
	}
	background(t, func(ctx context.Context) error {
		return ledger.Follow(ctx, l, ledger.Follower{
			Live:    func() {},
			Changed: func(totals []like.Total) { nodes[rand.IntN(n)].Publish(totals) },
			Lost:    func(error) {},
		})
	})
	return nodes
}

// TestNoWrongNumberWhateverHappens has nodes write and read while Redis is emptied,
// frozen and killed, and its keys and scripts go away (drills 36, 37). Each total
// that is shown was the ledger's at its version, no page fails or waits for Redis,
// and in the end all nodes show the number of facts.
func TestNoWrongNumberWhateverHappens(t *testing.T) {
	for name, redis := range map[string]func(testing.TB, ...servers.Option) *servers.RedisServer{
		"one": servers.Redis, "cluster": servers.RedisCluster,
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := redis(t)
			l := watch(memory.New(memory.Config{Lag: 200 * time.Millisecond, Seed: seed}))
			t.Cleanup(func() { l.Close() }) // after the nodes
			cfg := hurried(r.URL())
			cfg.TTL = time.Second
			reads := counts.DefaultConfig()
			reads.RefreshAfter, reads.Items = 100*time.Millisecond, 8
			nodes := start(t, l, cfg, reads, 3)
			items := posts(20)

			var work sync.WaitGroup
			defer work.Wait() // also when the test fails
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			defer cancel()
			for i, n := range nodes {
				work.Go(func() { likeAtRandom(t, ctx, l, n, rand.New(rand.NewPCG(seed, uint64(i))), items) })
				work.Go(func() { readAll(t, ctx, l, n, n.cfg.Timeout+reads.LoadTimeout, items) })
			}
			harmAtRandom(t, ctx, r, rand.New(rand.NewPCG(seed, 99)))
			work.Wait()
			for i, n := range nodes {
				eventually(t, fmt.Sprint("node ", i, " shows the facts"), func() bool { return showsFacts(t, l, n, items) })
			}
			for i, n := range nodes {
				eventually(t, fmt.Sprint("node ", i, " uses Redis"), func() bool { return n.Ready(t.Context()) == nil })
			}
		})
	}
}

func likeAtRandom(t *testing.T, ctx context.Context, l ledger.Writer, n node, r *rand.Rand, items []like.Item) {
	for ctx.Err() == nil {
		cmd := like.Command{Item: items[r.IntN(len(items))], User: like.User(fmt.Sprint("u", r.IntN(20))), Op: like.Op(1 + r.IntN(2))}
		ack, err := l.Apply(t.Context(), cmd)
		if err != nil {
			t.Error(err)
			return
		}
		if ack.Version != 0 {
			l.(*watched).show([]like.Total{{Item: cmd.Item, Count: ack.Count, Version: ack.Version}})
		}
		n.counts.Observe(like.Total{Item: cmd.Item, Count: ack.Count, Version: ack.Version})
		sleep(ctx, time.Duration(r.IntN(2000))*time.Microsecond)
	}
}

func readAll(t *testing.T, ctx context.Context, l *watched, n node, limit time.Duration, items []like.Item) {
	for ctx.Err() == nil {
		var page []counts.Entry
		var err error
		took := timed(func() { page, err = n.counts.Page(t.Context(), "", items) })
		if err != nil {
			t.Errorf("a page fails: %v", err)
			return
		}
		if took > limit {
			t.Errorf("a page took %s", took)
		}
		for _, e := range page {
			if !l.had(e.Total) {
				t.Errorf("%+v is shown, which the ledger never had", e.Total)
				return
			}
		}
		sleep(ctx, time.Millisecond)
	}
}

func harmAtRandom(t *testing.T, ctx context.Context, r *servers.RedisServer, random *rand.Rand) {
	for ctx.Err() == nil {
		i := random.IntN(len(r.Addresses()))
		switch random.IntN(4) {
		case 0:
			r.FlushAll(t)
		case 1:
			r.Freeze(t, i)
			sleep(ctx, 300*time.Millisecond)
			r.Thaw(t, i)
		case 2:
			r.Kill(t, i)
			sleep(ctx, 100*time.Millisecond)
			r.Start(t, i)
		case 3:
			loseScripts(t, r)
		}
		sleep(ctx, time.Duration(random.IntN(400))*time.Millisecond)
	}
}

func loseScripts(t *testing.T, r *servers.RedisServer) {
	for _, addr := range r.Addresses() {
		c, err := nodeClient(addr)
		if err != nil {
			t.Fatal(err)
		}
		ask(t, c, "SCRIPT", "FLUSH")
		c.Close()
	}
}

func showsFacts(t *testing.T, l *watched, n node, items []like.Item) bool {
	page, err := n.counts.Page(t.Context(), "", items)
	if err != nil {
		return false
	}
	for i, e := range page {
		facts, err := l.Likers(t.Context(), items[i], like.Fact{}, 100)
		if err != nil || e.Total.Count != int64(len(facts.Facts)) || e.Age != 0 {
			return false
		}
	}
	return true
}

// TestLostCacheAtFullReadLoad loses Redis under readers that find little in their
// process (drills 36, 38). The ledger gets no more reads at one time than it may,
// nobody waits long, and when Redis is back all pages succeed again soon.
func TestLostCacheAtFullReadLoad(t *testing.T) {
	harness.SkipUnlessHeavy(t, "it loads the machine for seconds")
	r := servers.Redis(t)
	l := watch(memory.New(memory.Config{}))
	t.Cleanup(func() { l.Close() }) // after the node
	l.pause = 10 * time.Millisecond
	reads := counts.DefaultConfig()
	reads.Items, reads.MaxLoads = 20, 4
	n := start(t, l, settings(r.URL()), reads, 1)[0]
	items := posts(1000)
	totals, err := l.Ledger.Totals(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	store(n.Client, totals...)
	var served, refused atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 64 {
		readers.Go(func() {
			for ctx.Err() == nil {
				page := make([]like.Item, 5)
				for i := range page {
					page[i] = post(rand.IntN(1000))
				}
				began := time.Now()
				_, err := n.counts.Page(t.Context(), "", page)
				switch {
				case err == nil:
					served.Add(1)
				case errors.Is(err, like.ErrOverloaded):
					refused.Add(1)
				default:
					t.Errorf("a page fails: %v", err)
				}
				if took := time.Since(began); took > reads.LoadTimeout {
					t.Errorf("a page took %s", took)
				}
				sleep(ctx, 5*time.Millisecond)
			}
		})
	}
	defer readers.Wait()
	defer cancel()
	eventually(t, "pages are served", func() bool { return served.Load() > 500 })
	if n := refused.Load(); n > 0 {
		t.Errorf("%d pages were refused with a cache", n)
	}
	r.Kill(t, 0)
	eventually(t, "the ledger is too busy for all", func() bool { return refused.Load() > 200 })
	before := served.Load()
	eventually(t, "it serves as many as it can", func() bool { return served.Load() > before+100 })
	if most := l.most.Load(); most > int64(reads.MaxLoads) {
		t.Errorf("the ledger got %d reads at one time, want at most %d", most, reads.MaxLoads)
	}
	r.Start(t, 0)
	healed := time.Now()
	for before, since := refused.Load(), time.Now(); time.Since(since) < time.Second; {
		if now := refused.Load(); now != before {
			before, since = now, time.Now()
		}
		if time.Since(healed) > 10*time.Second {
			t.Fatal("pages are still refused 10 s after Redis came back")
		}
		sleep(t.Context(), 10*time.Millisecond)
	}
	t.Logf("the last page was refused %s after Redis came back, empty; %d served and %d refused in all", time.Since(healed)-time.Second, served.Load(), refused.Load())
}

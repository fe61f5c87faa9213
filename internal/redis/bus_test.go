package redis

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/ledger/conformance"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/test/servers"
)

// silent is the feed of a ledger where nothing happens.
type silent struct{}

func (silent) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		if yield(nil, nil) {
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
		}
	}
}

// watcher follows a bus and keeps the newest total of each item.
type watcher struct {
	t      *testing.T
	mu     sync.Mutex
	newest map[like.Item]like.Total
}

// subscribe runs a bus over a ledger's feed and follows it.
func subscribe(t *testing.T, c *Client, feeder ledger.Feeder) *watcher {
	w := &watcher{t: t, newest: map[like.Item]like.Total{}}
	b := NewBus(c, feeder)
	background(t, b.Run)
	live := make(chan struct{})
	background(t, func(ctx context.Context) error {
		return ledger.Follow(ctx, b, ledger.Follower{
			Live: sync.OnceFunc(func() { close(live) }),
			Changed: func(totals []like.Total) {
				w.mu.Lock()
				defer w.mu.Unlock()
				for _, t := range totals {
					if t.Version > w.newest[t.Item].Version {
						w.newest[t.Item] = t
					}
				}
			},
			Lost: func(error) {},
		})
	})
	<-live
	return w
}

func (w *watcher) of(item like.Item) like.Total {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest[item]
}

// sees waits until changes of all segments that c publishes arrive. Messages may be
// lost, so they are repeated, with versions above the given one.
func (w *watcher) sees(c *Client, above uint64) {
	w.t.Helper()
	changes := make([]like.Total, 100)
	eventually(w.t, "changes of all segments arrive", func() bool {
		for i := range changes {
			changes[i] = total(i, int64(above), max(changes[i].Version, above)+1)
		}
		c.Publish(changes)
		return !slices.ContainsFunc(changes, func(t like.Total) bool { return w.of(t.Item).Version <= above })
	})
}

func testChangesReachOtherNodes(t *testing.T, r *servers.RedisServer) {
	a, b := connect(t, settings(r.URL())), connect(t, settings(r.URL()))
	watch := subscribe(t, b, silent{})
	watch.sees(a, 1<<20)
	if got := b.segmentsOf(posts(100)); got != ^set(0) {
		t.Errorf("the test covers segments %b only", got)
	}
}

// segmentsOf tells where the totals of items are.
func (c *Client) segmentsOf(items []like.Item) (all set) {
	for _, item := range items {
		all.add(segmentOf(c.totalKey(item)))
	}
	return all
}

// testChangesInAnyOrder publishes versions shuffled and twice (drill 47). Some are
// overtaken on the way; the newest always arrives.
func testChangesInAnyOrder(t *testing.T, r *servers.RedisServer) {
	a, b := connect(t, settings(r.URL())), connect(t, settings(r.URL()))
	watch := subscribe(t, b, silent{})
	watch.sees(a, 1<<20) // connects
	const versions = 500
	item := like.Item{Collection: "games", ID: "1"}
	for _, v := range append(rand.Perm(versions), rand.Perm(versions)...) {
		a.tell([]offer{{like.Total{Item: item, Count: int64(v), Version: uint64(v) + 1}, true}})
	}
	eventually(t, "the newest arrives", func() bool { return watch.of(item).Version == versions })
	if got := watch.of(item); got.Count != versions-1 {
		t.Errorf("%+v", got)
	}
}

func testMalformedMessages(t *testing.T, r *servers.RedisServer) {
	a, b, redis := connect(t, settings(r.URL())), connect(t, settings(r.URL())), admin(t, r)
	watch := subscribe(t, b, silent{})
	watch.sees(a, 1<<20)
	for segment := range segments {
		must(t, redis, "SPUBLISH", b.channel(segment), "what is this?")
	}
	eventually(t, "they are counted", func() bool { return value(t, b.metrics.malformed) == segments })
	watch.sees(a, 1<<21)
}

func testCloseWritesWhatWasOffered(t *testing.T, r *servers.RedisServer) {
	a, b := connect(t, settings(r.URL())), connect(t, settings(r.URL()))
	watch := subscribe(t, b, silent{})
	watch.sees(a, 1<<20)
	totals := make([]like.Total, 3*maxBatch) // Close has a second for them
	for i := range totals {
		totals[i] = total(1000+i, int64(i), 7)
	}
	a.Publish(totals)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range totals {
		if got, ok := get(t, b, want.Item); !ok || got != want {
			t.Fatalf("%v is %+v, %v in the cache", want, got, ok)
		}
	}
	eventually(t, "the last change is told", func() bool {
		return !slices.ContainsFunc(totals, func(t like.Total) bool { return watch.of(t.Item) != t })
	})
}

// testOnlyWhatNobodyToldIsWritten has a node that moved totals and died before it
// could tell: the others learn it from the ledger and write it.
func testOnlyWhatNobodyToldIsWritten(t *testing.T, r *servers.RedisServer) {
	a, b := connect(t, settings(r.URL())), connect(t, settings(r.URL()))
	var l ledger.Broadcast
	watch := subscribe(t, b, &l)
	watch.sees(a, 1<<20)
	item := like.Item{Collection: "games", ID: "1"}
	version := func(v uint64) []like.Total { return []like.Total{{Item: item, Count: int64(v), Version: v}} }
	appears := func(item like.Item, version uint64) {
		t.Helper()
		eventually(t, "it is written", func() bool { got, _ := get(t, a, item); return got.Version == version })
	}
	a.Publish(version(5))
	eventually(t, "the change is told", func() bool { return watch.of(item).Version == 5 })
	must(t, admin(t, r), "DEL", a.totalKey(item)) // to see whether somebody writes it
	l.Publish(version(5))
	l.Publish([]like.Total{total(1, 1, 1<<30)})
	appears(post(1), 1<<30)
	l.Publish(version(4))
	l.Publish([]like.Total{total(1, 1, 1<<31)})
	appears(post(1), 1<<31)
	if got, ok := get(t, a, item); ok {
		t.Errorf("%+v was written, which another node had told", got)
	}
	l.Publish(version(6))
	appears(item, 6)
}

// TestSubscriptionsComeBack takes away what they hang on.
func TestSubscriptionsComeBack(t *testing.T) {
	t.Run("node restarts", func(t *testing.T) {
		r := servers.RedisCluster(t)
		a, b := connect(t, settings(r.URL())), connect(t, settings(r.URL()))
		watch := subscribe(t, b, silent{})
		watch.sees(a, 1<<20)
		r.Kill(t, 1)
		r.Start(t, 1)
		watch.sees(a, 1<<21)
	})
	t.Run("slots move", func(t *testing.T) {
		r := servers.RedisCluster(t)
		a, b, redis := connect(t, settings(r.URL())), connect(t, settings(r.URL())), admin(t, r)
		watch := subscribe(t, b, silent{})
		watch.sees(a, 1<<20)
		nodes := redis.Nodes()
		id := ask(t, nodes[r.Addresses()[2]], "CLUSTER", "MYID")
		r.FlushAll(t) // a slot with keys does not move like this
		before := value(t, b.metrics.resubscribed)
		for segment := range 4 { // of the first node
			slot := strconv.Itoa(int(crc16(tags[segment][1:len(tags[segment])-1]) & 0x3fff))
			for _, addr := range []string{r.Addresses()[2], r.Addresses()[0], r.Addresses()[1]} {
				ask(t, nodes[addr], "CLUSTER", "SETSLOT", slot, "NODE", id)
			}
		}
		eventually(t, "Redis ends the subscriptions", func() bool { return value(t, b.metrics.resubscribed) >= before+4 })
		watch.sees(a, 1<<21)
	})
	t.Run("connections are killed", func(t *testing.T) {
		r := servers.Redis(t)
		a, b, redis := connect(t, settings(r.URL())), connect(t, settings(r.URL())), admin(t, r)
		watch := subscribe(t, b, silent{})
		watch.sees(a, 1<<20)
		must(t, redis, "CLIENT", "KILL", "TYPE", "pubsub")
		watch.sees(a, 1<<21)
	})
}

// scripted is a ledger's feed that a test breaks off.
type scripted struct {
	out  ledger.Broadcast
	hold chan struct{} // a feed waits for one token before it is live
}

func (s *scripted) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		select {
		case <-s.hold:
		case <-ctx.Done():
			yield(nil, context.Cause(ctx))
			return
		}
		for totals, err := range s.out.Feed(ctx) {
			if !yield(totals, err) {
				return
			}
		}
	}
}

// element is one step of a feed.
type element struct {
	totals []like.Total
	err    error
}

// elements reads a feed into a channel.
func elements(t *testing.T, f ledger.Feeder) <-chan element {
	ctx, cancel := context.WithCancel(t.Context())
	all := make(chan element, 1000)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(all)
		for totals, err := range f.Feed(ctx) {
			all <- element{append([]like.Total(nil), totals...), err}
		}
	})
	t.Cleanup(func() { cancel(); reading.Wait() })
	return all
}

// TestGapOfTheLedgerIsAGapOfTheBus: a consumer of the bus learns that changes may be
// missing once, when all that follow are there again.
func TestGapOfTheLedgerIsAGapOfTheBus(t *testing.T) {
	c := connect(t, settings(servers.Redis(t).URL()))
	s := &scripted{hold: make(chan struct{})}
	b := NewBus(c, s)
	stop := background(t, b.Run)

	early := elements(t, b)
	quietFor(t, early, "a feed is live before that of the ledger")
	s.hold <- struct{}{}
	if e := next(t, early); e.totals != nil || e.err != nil {
		t.Fatalf("first element %+v", e)
	}
	s.out.Publish([]like.Total{total(1, 1, 1)})
	if e := next(t, early); len(e.totals) != 1 || e.err != nil {
		t.Fatalf("%+v, want a change", e)
	}

	s.out.Gap()
	eventually(t, "the bus notices", func() bool { return value(t, c.metrics.gaps) == 1 })
	late := elements(t, b)
	quietFor(t, late, "a feed is live while that of the ledger is not")
	b.out.Publish([]like.Total{total(2, 2, 2)})
	if e := next(t, early); len(e.totals) != 1 || e.err != nil {
		t.Errorf("%+v, want changes of other nodes meanwhile", e)
	}
	s.hold <- struct{}{}
	if e := next(t, early); !errors.Is(e.err, like.ErrOverloaded) {
		t.Errorf("%+v, want the gap", e)
	}
	if e := next(t, late); e.totals != nil || e.err != nil {
		t.Errorf("the feed that was opened in the gap begins with %+v", e)
	}
	s.out.Publish([]like.Total{total(1, 3, 3)})
	if e := next(t, late); len(e.totals) != 1 || e.err != nil {
		t.Errorf("%+v, want a change", e)
	}
	stop()
	if e := next(t, late); !errors.Is(e.err, like.ErrClosed) {
		t.Errorf("%+v after the end of the bus, want ErrClosed", e)
	}
	after := elements(t, b)
	next(t, after)
	if e := next(t, after); !errors.Is(e.err, like.ErrClosed) {
		t.Errorf("a feed opened after the end begins with %+v, want ErrClosed", e)
	}
}

func next(t *testing.T, elements <-chan element) element {
	t.Helper()
	select {
	case e := <-elements:
		return e
	case <-time.After(30 * time.Second):
		t.Fatal("the feed yields nothing")
		panic("unreachable")
	}
}

func quietFor(t *testing.T, elements <-chan element, what string) {
	t.Helper()
	select {
	case e := <-elements:
		t.Fatalf("%s: %+v", what, e)
	case <-time.After(50 * time.Millisecond):
	}
}

// onBus is a ledger whose feeds come over a bus, and whose changes are published.
type onBus struct {
	*memory.Ledger
	bus     *Bus
	running sync.WaitGroup
}

func (l *onBus) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] { return l.bus.Feed(ctx) }

func (l *onBus) Close() error {
	err := l.Ledger.Close()
	l.running.Wait()
	return err
}

// TestFeedOverTheBusKeepsTheContract runs the suite of ledgers with feeds that come
// over the bus.
func TestFeedOverTheBusKeepsTheContract(t *testing.T) {
	r := servers.Redis(t)
	opened := 0
	wrap := func(tb testing.TB, l *memory.Ledger) ledger.Ledger {
		opened++
		cfg := settings(r.URL())
		cfg.Prefix += strconv.Itoa(opened) // other ledgers have the same items
		c := connect(tb, cfg)
		o := &onBus{Ledger: l, bus: NewBus(c, l)}
		o.running.Go(func() { _ = o.bus.Run(context.Background()) })
		o.running.Go(func() {
			_ = ledger.Follow(context.Background(), l, ledger.Follower{
				Live: func() {},
				// Not all of it: messages may be lost.
				Changed: func(totals []like.Total) { c.Publish(totals[:min(len(totals), maxBatch)]) },
				Lost:    func(error) {},
			})
		})
		tb.Cleanup(func() { _ = o.Close() })
		return o
	}
	conformance.Run(t, conformance.Harness{
		Open: func(tb testing.TB, now func() time.Time) ledger.Ledger {
			return wrap(tb, memory.New(memory.Config{Now: now}))
		},
		Reopen: func(tb testing.TB, l ledger.Ledger) ledger.Ledger {
			return wrap(tb, l.(*onBus).Ledger.Reopen())
		},
		Injure: func(_ testing.TB, l ledger.Ledger, in conformance.Injury) bool {
			l.(*onBus).Skew(in.Fact.Item, in.Skew)
			return !in.Unlist && !in.Phantom
		},
		Lacks: []conformance.Lack{{Rule: "W1", Reason: "keeps nothing beyond its process"}},
	})
}

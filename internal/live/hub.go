package live

import (
	"context"
	"crypto/rand"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Totals reads the total of each item, in request order. It must not be older than
// what the feed has yielded: a [ledger.Reader] is one, a cache is not. When it is a
// [ledger.Sharded], one shard that hangs holds up only streams with items of it.
type Totals interface {
	Totals(ctx context.Context, items []like.Item) ([]like.Total, error)
}

// Hub tells clients what the items they watch become. It is safe for concurrent
// use. New starts nothing; clients are served while Run runs.
type Hub struct {
	cfg     Config
	totals  Totals
	log     *slog.Logger
	metrics *metrics
	epoch   string       // tells the ids of this hub from those of others
	seed    maphash.Seed // of the hash of a set of items

	readers []*reader // one for each shard of the ledger
	shardOf func(like.Item) int
	own     sync.WaitGroup

	// All below is guarded by mu. No input or output happens under it.
	mu        sync.Mutex
	draining  bool // no new clients
	ended     bool // Run has returned, or is about to
	seq       uint64
	items     map[like.Item]*entry
	dirty     []*entry
	idle      []idleEntry
	audiences map[uint64]*audience
	clients   map[*client]struct{}
	empty     chan struct{} // closed when the last client is gone, once draining
	perUser   map[like.User]int
	perAddr   map[string]int
	poller    *poller // nil until a client needs it

	flushing flushing // owned by the goroutine that flushes
}

// New returns a hub over the totals of a ledger. reg may be nil.
func New(cfg Config, totals Totals, log *slog.Logger, reg prometheus.Registerer) (*Hub, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	shards, shardOf := ledger.Shards(totals)
	h := &Hub{
		cfg:       cfg,
		totals:    totals,
		log:       log.With("component", "live"),
		epoch:     rand.Text()[:10],
		seed:      maphash.MakeSeed(),
		readers:   newReaders(shards),
		shardOf:   shardOf,
		seq:       1,
		items:     map[like.Item]*entry{},
		audiences: map[uint64]*audience{},
		clients:   map[*client]struct{}{},
		perUser:   map[like.User]int{},
		perAddr:   map[string]int{},
	}
	h.metrics = newMetrics(reg, func() float64 {
		h.mu.Lock()
		defer h.mu.Unlock()
		return float64(len(h.items))
	})
	return h, nil
}

// Run serves clients until ctx is done and then returns nil. It follows the
// ledger's feed, and when that ends early it opens it again and reads again what is
// watched. When it returns every stream of the hub is closed and every goroutine
// of it has ended. It returns [like.ErrClosed] when the ledger closes first. It
// can be run once.
func (h *Hub) Run(ctx context.Context, feeder ledger.Feeder) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, r := range h.readers {
		wg.Go(func() { h.read(ctx, r) })
	}
	wg.Go(func() { h.tick(ctx) })
	err := h.followAll(ctx, feeder)
	cancel()
	wg.Wait()
	h.end()
	return err
}

// followAll reads everything again whenever a feed becomes live, because what
// changed before may have been missed.
func (h *Hub) followAll(ctx context.Context, feeder ledger.Feeder) error {
	return ledger.Follow(ctx, feeder, ledger.Follower{
		Live: func() {
			if h.recheckAll() {
				h.metrics.resyncs.Inc()
			}
		},
		Changed: h.observe,
		Lost: func(err error) {
			h.log.WarnContext(ctx, "feed of totals ended early", "error", err)
		},
	})
}

// MaxItems is how many items one stream may have.
func (h *Hub) MaxItems() int { return h.cfg.MaxItems }

// Drain tells every client to come back later, each at its own time, and refuses
// new ones. It returns nil when all streams have ended, or the cause of ctx after
// closing those that have not.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	h.draining = true
	if h.empty == nil {
		h.empty = make(chan struct{})
		h.checkEmpty()
	}
	empty, clients := h.empty, h.everyone()
	h.mu.Unlock()
	for _, c := range clients {
		c.end(h.retry(h.cfg.DrainSpread))
	}
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		h.stopAll()
		return context.Cause(ctx)
	}
}

// end closes what is still open and waits for the hub's goroutines.
func (h *Hub) end() {
	h.mu.Lock()
	h.draining, h.ended = true, true
	p := h.poller
	h.mu.Unlock()
	h.stopAll()
	if p != nil {
		p.close()
	}
	h.own.Wait()
}

func (h *Hub) stopAll() {
	h.mu.Lock()
	clients := h.everyone()
	h.mu.Unlock()
	for _, c := range clients {
		c.stop()
	}
}

// everyone lists the clients. The caller holds h.mu.
func (h *Hub) everyone() []*client {
	clients := make([]*client, 0, len(h.clients))
	for c := range h.clients {
		clients = append(clients, c)
	}
	return clients
}

// start runs fn in a goroutine of the hub, unless the hub has ended.
func (h *Hub) start(fn func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return false
	}
	h.own.Go(fn)
	return true
}

const pause = 100 * time.Millisecond // between attempts while the ledger fails

// sleep waits and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

package redis

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/rueidis"

	"likewise/internal/like"
)

// maxCalls is how many calls are under way at one time. More are not made: a Redis
// that is this far behind is of no use.
const maxCalls = 1024

// Client is a node's side of what nodes share. It is safe for concurrent use, and
// none of its methods fails because Redis does.
type Client struct {
	cfg     Config
	option  rueidis.ClientOption
	log     *slog.Logger
	metrics *metrics
	breaker breaker
	outbox  outbox
	noted   *noted
	places  chan struct{} // taken by calls under way

	redis     atomic.Pointer[server] // nil until the first connection
	connected chan struct{}          // closed then
	leaving   context.Context        // done when Close is called
	leave     context.CancelFunc
	writer    sync.WaitGroup
	closing   context.Context // done when everything has been written
	stop      context.CancelFunc

	mu     sync.RWMutex
	closed bool           // guarded by mu
	own    sync.WaitGroup // grows under mu, while not closed
}

// server is a connected Redis.
type server struct {
	rueidis.Client
	cluster bool
}

// Open returns a client for cfg. Redis need not be there yet: until it is, the
// client works as with a Redis that does not answer. Settings that cannot work are
// [like.ErrInvalid]. reg may be nil.
func Open(cfg Config, log *slog.Logger, reg prometheus.Registerer) (*Client, error) {
	option, err := cfg.options()
	if err != nil {
		return nil, err
	}
	return open(cfg, option, log, reg), nil
}

func open(cfg Config, option rueidis.ClientOption, log *slog.Logger, reg prometheus.Registerer) *Client {
	c := &Client{
		cfg:       cfg,
		option:    option,
		log:       log.With("component", "redis"),
		outbox:    newOutbox(),
		noted:     newNoted(),
		places:    make(chan struct{}, maxCalls),
		connected: make(chan struct{}),
	}
	c.breaker.tripped = make(chan struct{}, 1)
	c.metrics = newMetrics(reg, c.up)
	c.closing, c.stop = context.WithCancel(context.Background())
	c.leaving, c.leave = context.WithCancel(c.closing)
	c.own.Go(c.watch)
	c.writer.Go(c.write)
	return c
}

// Close writes what was offered, for up to a second or two while Redis answers,
// gives up what is still under way, and waits for it. Later calls are answered as if
// Redis was down. Close again returns nil.
func (c *Client) Close() error {
	c.leave()
	c.writer.Wait()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.own.Wait()
	return nil
}

// close breaks off what is under way. It waits for the connections, which the client
// of a cluster does not.
func (s *server) close() {
	var nodes sync.WaitGroup
	for _, node := range s.Nodes() {
		nodes.Go(node.Close)
	}
	nodes.Wait()
	s.Close()
}

// Ready reports nil while all of Redis can be used, or else, as [like.ErrUnavailable],
// that it cannot. A node works without.
func (c *Client) Ready(context.Context) error {
	if c.up() {
		return nil
	}
	return fmt.Errorf("%w: redis cannot be used", like.ErrUnavailable)
}

func (c *Client) up() bool {
	return c.redis.Load() != nil && c.breaker.open() == 0 && c.closing.Err() == nil
}

// key names something of a format: likewise:total:1:…
func (c *Client) key(format, name string) string { return c.cfg.Prefix + ":" + format + ":" + name }

// segment is where a key is: one server is one segment.
func (s *server) segment(key string) int {
	if s.cluster {
		return segmentOf(key)
	}
	return 0
}

// reach returns the server, or nil when there is none yet or any more, and the
// segments that are not to be asked.
func (c *Client) reach() (s *server, open set) {
	if s = c.redis.Load(); s == nil || c.closing.Err() != nil {
		return nil, ^set(0)
	}
	return s, c.breaker.open()
}

// do runs fn, which asks the given segments and returns what it learned, from them
// and of them. It returns within the limit, whether fn does or not: the
// client of Redis waits in places where it does not look at a context. ok is false
// when there is no answer.
func do[T any](ctx context.Context, c *Client, op *operation, limit time.Duration, asked set, fn func(context.Context) (T, verdict)) (answer T, ok bool) {
	type outcome struct {
		answer T
		verdict
	}
	done := make(chan outcome, 1)
	start := time.Now()
	began := c.begin(func() {
		// The caller may go; the answer is of use for the breaker. What is late in one
		// part of a cluster must not cost what other parts answered.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit-limit/5)
		defer cancel()
		answer, v := fn(bounded)
		if c.closing.Err() == nil {
			c.breaker.report(asked, v.lost)
			c.breaker.trip(v.unfit)
		}
		done <- outcome{answer, v}
	})
	if !began {
		op.skipped.Inc()
		return answer, false
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case o := <-done:
		op.seconds.Observe(time.Since(start).Seconds())
		if o.failed {
			op.failed.Inc()
		} else {
			op.succeeded.Inc()
		}
		return o.answer, true
	case <-late.C:
		op.failed.Inc()
	case <-ctx.Done():
	case <-c.closing.Done():
	}
	return answer, false
}

// begin runs fn in a goroutine of the client if there is a place for it.
func (c *Client) begin(fn func()) bool {
	select {
	case c.places <- struct{}{}:
	default:
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		<-c.places
		return false
	}
	c.own.Go(func() {
		defer func() { <-c.places }()
		fn()
	})
	return true
}

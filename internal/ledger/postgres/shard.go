package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// shard is one database with this node's writers to it.
type shard struct {
	number    int
	cfg       *Config
	log       *slog.Logger
	sockets   *sockets
	broadcast *ledger.Broadcast
	newest    *atomic.Int64 // the largest stamp that this node knows of, over all shards

	// Reads and writes have connections of their own, so that neither starves the
	// other.
	write, read *pgxpool.Pool
	replicas    replicas
	positions   positions
	queue       *queue
	following   sync.Mutex // over journal, until the feeds were told
	journal     journal
	cut         atomic.Int32 // how often the items of a drain are halved now

	writers, own sync.WaitGroup
	stop         context.CancelFunc // ends everything; writers are waited for first

	commits, commands, changes   atomic.Uint64
	retries, unanswered, drained atomic.Uint64
	replicaReads, replicaMisses  atomic.Uint64
	lag                          atomic.Int64 // of totals, nanoseconds
	alive                        atomic.Int64 // when the database last answered, nanoseconds since the epoch
}

// start runs the writers and what is done in the background, until close.
func (s *shard) start(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	s.stop = stop
	for range s.cfg.Writers {
		s.writers.Go(func() { s.work(ctx) })
	}
	s.own.Go(func() { s.repeat(ctx, "feeds", s.follow) }) // however long a drain takes
	if s.cfg.Drain {
		s.own.Go(func() { s.tend(ctx) })
	}
	s.own.Go(func() { s.expire(ctx) })
}

// expire refuses calls that wait behind stuck writers.
func (s *shard) expire(ctx context.Context) {
	for sleep(ctx, min(s.cfg.QueueAge/10, 100*time.Millisecond)) {
		s.queue.expire()
	}
}

// submit queues a call and waits for it.
func (s *shard) submit(ctx context.Context, c *call) error {
	if err := s.queue.add(c); err != nil {
		return err
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish ends what is queued and what goes on in the background.
func (s *shard) finish() {
	s.queue.close()
	s.writers.Wait()
	s.stop()
	s.own.Wait()
}

// pools lists the pools that are open.
func (s *shard) pools() []*pgxpool.Pool {
	var pools []*pgxpool.Pool
	for _, pool := range []*pgxpool.Pool{s.write, s.read} {
		if pool != nil {
			pools = append(pools, pool)
		}
	}
	for _, r := range s.replicas.list() {
		pools = append(pools, r.pool)
	}
	return pools
}

// release closes every connection, as soon as nobody uses it.
func (s *shard) release() {
	for _, pool := range s.pools() {
		pool.Close()
	}
}

// stampNow is the wall clock that imported times are judged by.
func (c *Config) stampNow() like.Stamp {
	if c.Now != nil {
		return like.StampOf(c.Now())
	}
	return like.StampOf(time.Now())
}

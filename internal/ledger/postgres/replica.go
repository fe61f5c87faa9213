package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"likewise/internal/like"
)

// replicaWait is how long a read waits for a replica to catch up before the primary
// answers, and replicaRest how long one that failed is left alone.
const (
	replicaWait = 20 * time.Millisecond
	replicaRest = time.Second
)

// replica is a streaming replica of a shard's database.
type replica struct {
	pool *pgxpool.Pool

	mu       sync.Mutex
	replayed uint64    // at least this far
	resting  time.Time // until then it is not asked
}

// addReplica connects a replica and finds out whose it is.
func (l *Ledger) addReplica(ctx context.Context, url string) error {
	pool, err := l.cfg.pool(ctx, url, l.cfg.MaxConnections)
	if err != nil {
		return err
	}
	p, ok, err := recorded(ctx, pool)
	if err == nil && (!ok || p.shard >= len(l.shards)) {
		err = fmt.Errorf("%w: a replica belongs to none of the databases", like.ErrInvalid)
	}
	if err == nil {
		err = sameLedger(ctx, l.shards[p.shard].write, p)
	}
	if err != nil {
		pool.Close()
		return err
	}
	s := l.shards[p.shard]
	s.replicas = append(s.replicas, &replica{pool: pool})
	return nil
}

func sameLedger(ctx context.Context, primary *pgxpool.Pool, p place) error {
	have, _, err := recorded(ctx, primary)
	if err == nil && have != p {
		err = fmt.Errorf("%w: a replica belongs to another ledger", like.ErrInvalid)
	}
	return err
}

// positions asks the primary how far its log reaches, once for all reads that wait for
// the answer and began before the question was sent (as Raft's ReadIndex does; Ongaro
// 2014, section 6.4).
type positions struct {
	turn chan struct{} // holds a token while a question is under way

	mu   sync.Mutex
	next *position // the question that is not sent yet
}

type position struct {
	done chan struct{}
	lsn  uint64
	err  error
}

// ask returns a position of the log that holds everything acknowledged before.
func (p *positions) ask(ctx context.Context, primary *pgxpool.Pool) (uint64, error) {
	p.mu.Lock()
	if p.next == nil {
		p.next = &position{done: make(chan struct{})}
	}
	mine := p.next
	p.mu.Unlock()
	select {
	case <-mine.done:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		p.send(ctx, mine, primary)
	}
	return mine.lsn, mine.err
}

// send asks for everybody who joined a question, unless somebody else did so.
func (p *positions) send(ctx context.Context, mine *position, primary *pgxpool.Pool) {
	p.mu.Lock()
	if p.next != mine {
		p.mu.Unlock() // it was sent, and answered before the turn was free
		return
	}
	p.next = nil
	p.mu.Unlock()
	// The others do not depend on this caller's context.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	mine.err = primary.QueryRow(ctx, "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint").Scan(&mine.lsn)
	close(mine.done)
}

// fresh runs a read that sees everything acknowledged before: on a replica that has
// replayed it, else, or when the replica fails, on the primary.
func (s *shard) fresh(ctx context.Context, read func(*pgxpool.Pool) error) error {
	if r := s.caughtUp(ctx); r != nil {
		if err := read(r.pool); err == nil || ctx.Err() != nil {
			return err
		}
		r.rest()
	}
	return read(s.read)
}

// caughtUp returns a replica that has replayed everything acknowledged before the
// call, or nil.
func (s *shard) caughtUp(ctx context.Context) *replica {
	if len(s.replicas) == 0 {
		return nil
	}
	r := s.replicas[rand.N(len(s.replicas))]
	if r.rests() {
		return nil
	}
	lsn, err := s.positions.ask(ctx, s.read)
	if err != nil || !r.replays(ctx, lsn) {
		return nil
	}
	return r
}

// rest leaves a replica alone for a while.
func (r *replica) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resting = time.Now().Add(replicaRest)
}

func (r *replica) rests() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.resting)
}

// replays waits a little for the replica to replay the log up to a position.
func (r *replica) replays(ctx context.Context, lsn uint64) bool {
	r.mu.Lock()
	replayed := r.replayed
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, replicaWait)
	defer cancel()
	for replayed < lsn {
		err := r.pool.QueryRow(ctx, "SELECT coalesce((pg_last_wal_replay_lsn() - '0/0')::bigint, 0)").Scan(&replayed)
		if err != nil || replayed < lsn && !sleep(ctx, time.Millisecond) {
			break
		}
	}
	r.mu.Lock()
	r.replayed = max(r.replayed, replayed)
	r.mu.Unlock()
	if replayed < lsn {
		r.rest()
	}
	return replayed >= lsn
}

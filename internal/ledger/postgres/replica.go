package postgres

import (
	"cmp"
	"context"
	"errors"
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

	replicaSearch = 5 * time.Second // between two looks for a replica that was away
)

// replica is a streaming replica of a shard's database.
type replica struct {
	pool *pgxpool.Pool

	mu       sync.Mutex
	replayed uint64    // at least this far
	resting  time.Time // until then it is not asked
}

// replicas are those of a shard that were found.
type replicas struct {
	mu    sync.Mutex
	found []*replica
}

func (r *replicas) list() []*replica {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

func (r *replicas) add(one *replica) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found[:len(r.found):len(r.found)], one)
}

// addReplica connects a replica, the n-th of the configured ones. One that is away, or
// has not replayed the making of the ledger, is looked for again in the background:
// reads do without.
func (l *Ledger) addReplica(ctx context.Context, n int, url string) error {
	pool, err := l.cfg.pool(ctx, l.sockets, url, l.cfg.MaxConnections)
	if err != nil {
		return err
	}
	found, err := l.place(ctx, pool)
	if found || errors.Is(err, like.ErrInvalid) {
		if err != nil {
			pool.Close()
		}
		return err
	}
	log := l.cfg.Logger.With("replica", n+1)
	log.Warn("a replica cannot be used yet; reads go to the primary", "error", err)
	l.searches.Go(func() {
		for sleep(l.life, replicaSearch) {
			if found, err = l.place(l.life, pool); found {
				log.Info("the replica is used")
				return
			}
			if errors.Is(err, like.ErrInvalid) {
				log.Error("a replica is never used", "error", err)
				break
			}
		}
		pool.Close()
	})
	return nil
}

// place gives a replica to the shard whose database it is one of.
func (l *Ledger) place(ctx context.Context, pool *pgxpool.Pool) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, replicaSearch)
	defer cancel()
	p, ok, err := recorded(ctx, pool)
	if err != nil || !ok {
		return false, err
	}
	if p.shards != len(l.shards) {
		return false, fmt.Errorf("%w: a replica belongs to none of the databases", like.ErrInvalid)
	}
	s := l.shards[p.shard]
	if have, _, err := recorded(ctx, s.write); err != nil || have != p {
		return false, cmp.Or(err, fmt.Errorf("%w: a replica belongs to another ledger", like.ErrInvalid))
	}
	s.replicas.add(&replica{pool: pool})
	return true, nil
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
	found := s.replicas.list()
	if len(found) == 0 {
		return nil
	}
	r := found[rand.N(len(found))]
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

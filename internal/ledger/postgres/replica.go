package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"likewise/internal/like"
)

// A read waits replicaWait for a replica to catch up and then replicaRead for its
// answer, before the primary is asked. A replica that failed so is left alone for
// replicaRest, so that a slow one makes few reads slow and the primary answers them.
const (
	replicaWait = 20 * time.Millisecond
	replicaRead = 100 * time.Millisecond
	replicaRest = time.Second

	replicaSearch = 5 * time.Second // between two looks for a replica that was away

	seenPosition = "position" // what a connection knows of its server
)

// replica is a streaming replica of a shard's database.
type replica struct {
	pool    *pgxpool.Pool
	bounced bool // by a PgBouncer

	mu      sync.Mutex
	resting time.Time // until then it is not asked
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
	s.replicas.add(&replica{pool: pool, bounced: l.cfg.PgBouncer})
	return true, nil
}

// querier is a pool, a connection of it, or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// fresh runs a read that sees everything acknowledged before: on a replica that has
// replayed it, else, or when the replica fails, on the primary.
func (s *shard) fresh(ctx context.Context, read func(context.Context, querier) error) error {
	if len(s.cfg.Replicas) == 0 {
		return read(ctx, s.read)
	}
	if r := s.pickReplica(); r != nil {
		if done, err := r.read(ctx, s, read); done {
			s.replicaReads.Add(1)
			return err
		}
	}
	s.replicaMisses.Add(1)
	return read(ctx, s.read)
}

// pickReplica returns any replica that is not left alone, or nil.
func (s *shard) pickReplica() *replica {
	found := s.replicas.list()
	if len(found) == 0 {
		return nil
	}
	if r := found[rand.N(len(found))]; !r.rests() {
		return r
	}
	return nil
}

// read runs a read on the replica, unless that is behind, fails or is slow: then the
// read is not done, and the replica is left alone for a while.
func (r *replica) read(ctx context.Context, s *shard, read func(context.Context, querier) error) (done bool, err error) {
	end, err := s.positions.ask(ctx, s.read)
	if err != nil {
		return false, nil // which says nothing of the replica
	}
	db, leave, err := r.replayed(ctx, end)
	if err == nil {
		defer leave()
		short, cancel := context.WithTimeout(ctx, replicaRead)
		defer cancel()
		err = read(short, db)
	}
	if err == nil || ctx.Err() != nil {
		return true, err
	}
	r.rest()
	return false, nil
}

// replayed returns what to read on as soon as that has replayed the log up to a
// position; the caller leaves it.
func (r *replica) replayed(ctx context.Context, end position) (db querier, leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, replicaWait)
	defer cancel()
	db, known, leave, err := r.session(ctx)
	if err != nil {
		return nil, nil, err
	}
	seen, _ := known[seenPosition].(position)
	for !seen.reaches(end) {
		err := db.QueryRow(ctx, replayedSQL).Scan(&seen.timeline, &seen.lsn)
		if err == nil && !seen.reaches(end) && !sleep(ctx, time.Millisecond) {
			err = context.Cause(ctx)
		}
		if err != nil {
			leave()
			return nil, nil, err
		}
	}
	known[seenPosition] = seen
	return db, leave, nil
}

// session returns what leads to one server all the time, and what is known of that
// server. One URL may stand for several, so that only a connection does, or only a
// transaction where PgBouncer gives each one any of its connections.
func (r *replica) session(ctx context.Context) (db querier, known map[string]any, leave func(), err error) {
	if r.bounced {
		tx, err := r.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly})
		if err != nil {
			return nil, nil, nil, err
		}
		return tx, map[string]any{}, func() { leaveTx(ctx, tx) }, nil
	}
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	return conn, conn.Conn().PgConn().CustomData(), conn.Release, nil
}

// leaveTx ends a transaction that only read; when that fails, its connection is closed.
func leaveTx(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
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

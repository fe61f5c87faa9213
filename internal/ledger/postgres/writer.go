package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"likewise/internal/like"
)

// transaction names a transaction so that its fate can be asked for later. An id is
// unique within an era only: a server that crashed gives out again the ids that it
// lost from its log, and so does a standby that took over.
type transaction struct {
	id  uint64
	era int64 // 0 when it had none
}

var (
	errRolledBack = errors.New("the transaction was rolled back")
	errUnknown    = errors.New("whether the batch was applied is not known")
)

// work takes batches from the queue until it is closed and empty.
func (s *shard) work(ctx context.Context) {
	for {
		calls := s.queue.take(s.cfg.BatchCommands, s.cfg.BatchWait)
		if len(calls) == 0 {
			return
		}
		err := s.applyCalls(ctx, calls)
		for _, c := range calls {
			c.done <- err
		}
	}
}

// applyCalls applies calls in one transaction, and in further ones what liked again
// after an unlike, or met a fact that was gone again.
func (s *shard) applyCalls(ctx context.Context, calls []*call) error {
	commands := 0
	for _, c := range calls {
		commands += len(c.cmds)
	}
	oldest := calls[0].since
	ctx, cancel := context.WithTimeout(ctx, s.cfg.QueueAge)
	defer cancel()
	runs := runsOf(calls)
	for len(runs) > 0 {
		if err := s.applyStep(ctx, newStep(runs, commands)); err != nil {
			return err
		}
		rest := runs[:0]
		for _, r := range runs {
			if r.done < len(r.commands) {
				rest = append(rest, r)
			}
		}
		runs = rest
	}
	s.committed(Commit{Commands: commands, Wait: time.Since(oldest)})
	return nil
}

// applyStep applies one step once, and acknowledges it.
func (s *shard) applyStep(ctx context.Context, st *step) error {
	o, err := s.applyOnce(ctx, st)
	if err != nil {
		return failure(context.WithoutCancel(ctx), "apply", err)
	}
	s.changed(o, st.places)
	var met []like.State
	if o.added != st.unseen(o) {
		if met, err = s.readStates(ctx, st.ops); err != nil { // applied, but what to say of it cannot be read
			return failure(context.WithoutCancel(ctx), "apply", err)
		}
	}
	st.settle(o, met)
	return nil
}

// applyOnce runs a transaction again and again until it is known to be committed or
// the deadline has passed. Each one that is tried again was rolled back before.
func (s *shard) applyOnce(ctx context.Context, st *step) (*outcome, error) {
	sql := applyFastSQL
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		o, err := s.transact(ctx, st, sql)
		if taken(err) && sql == applyFastSQL {
			sql = applySQL
			continue
		}
		if err == nil || errors.Is(err, errUnknown) || errors.Is(err, errFrozen) || damaged(err) || ctx.Err() != nil {
			return o, err
		}
		s.retries.Add(1)
		s.log.Warn("a batch of likes is tried again", "error", err)
		if !sleep(ctx, pause/2+rand.N(pause)) {
			return nil, err
		}
	}
}

// transact runs one transaction. An error other than errUnknown says that nothing
// was changed.
func (s *shard) transact(ctx context.Context, st *step, sql string) (*outcome, error) {
	conn, err := s.write.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	o, err := s.execute(ctx, conn, st, sql)
	if err != nil {
		abandon(ctx, conn)
		return nil, err
	}
	err = commit(ctx, conn, "COMMIT")
	if err == nil {
		conn.Release()
		if o.tx.id != 0 && o.tx.era == 0 {
			s.beginEra(ctx)
		}
		return o, nil
	}
	discard(ctx, conn)
	switch {
	case o.waits:
		return nil, err // what it found may be lost
	case o.tx == (transaction{}):
		return o, nil // it changed nothing, so that it cannot have been lost
	}
	return o, s.resolve(ctx, o.tx, err)
}

// abandon rolls back what is open on a connection, or closes it.
func abandon(ctx context.Context, conn *pgxpool.Conn) {
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		discard(ctx, conn)
		return
	}
	conn.Release()
}

// discard closes a connection, which rolls back what is open on it.
func discard(ctx context.Context, conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Hijack().Close(ctx) // it is broken already, or says nothing new
}

// execute sends everything of the transaction but its COMMIT in one round trip.
func (s *shard) execute(ctx context.Context, conn *pgxpool.Conn, st *step, sql string) (o *outcome, err error) {
	var now *int64
	if s.cfg.Now != nil {
		at := s.cfg.Now().UnixMicro()
		now = &at
	}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue(beginSQL, int64(freezeLock))
	b.Queue(sql, st.args(like.Stamp(s.newest.Load()), now)...)
	results := conn.SendBatch(ctx, b)
	defer func() { err = errors.Join(err, results.Close()) }()
	if _, err := results.Exec(); err != nil {
		return nil, err
	}
	var open bool
	if err := results.QueryRow().Scan(&open); err != nil {
		return nil, err
	}
	if !open {
		return nil, errFrozen
	}
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	return st.read(rows)
}

// resolve finds out what became of a transaction whose COMMIT was not answered: nil
// when it was committed, errUnknown when that cannot be known. The database is asked
// by the transaction's id, as its manual recommends for this case (pg_xact_status).
// Committed may mean on this server only, when the wait for a replica was cut off: it
// counts only if the answer is the same behind another commit that waited.
func (s *shard) resolve(ctx context.Context, tx transaction, cause error) error {
	s.unanswered.Add(1)
	waited := false
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		status, same, err := s.fate(ctx, tx)
		switch {
		case err == nil && !same:
			return fmt.Errorf("%w: the database crashed or another server took over: %w", errUnknown, cause)
		case err == nil && status == "committed" && waited:
			return nil
		case err == nil && status == "committed":
			if err = s.mark(ctx); err == nil {
				waited = true
				continue
			}
		case err == nil && status == "aborted":
			return fmt.Errorf("%w: %w", errRolledBack, cause)
		}
		if !sleep(ctx, pause/2+rand.N(pause)) {
			return fmt.Errorf("%w: %w", errUnknown, errors.Join(cause, err))
		}
	}
}

// mark commits behind everything that was committed before, and waits as that did.
func (s *shard) mark(ctx context.Context) error {
	return s.write.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		return commit(ctx, conn, "SELECT pg_logical_emit_message(true, 'likewise', '')")
	})
}

// fate asks for the status of a transaction: committed, aborted, in progress, or
// nothing. It is of use only when the era is the same.
func (s *shard) fate(ctx context.Context, tx transaction) (status string, same bool, err error) {
	// The era after the status, so that no crash can come between them unseen. A server
	// that never gave out the id has an error for it.
	asked := s.write.QueryRow(ctx, "SELECT coalesce(pg_xact_status($1::text::xid8), '')", fmt.Sprint(tx.id)).Scan(&status)
	var era int64
	if err := s.write.QueryRow(ctx, "SELECT coalesce((SELECT id FROM likewise.era WHERE only_row), 0)").Scan(&era); err != nil {
		return "", false, err
	}
	if era != tx.era || era == 0 {
		return "", false, nil
	}
	return status, true, asked
}

// beginEra makes an era when a crash has ended the last one. That it fails leaves
// transactions without one, whose fate cannot be asked for.
func (s *shard) beginEra(ctx context.Context) {
	const eraSQL = "INSERT INTO likewise.era (id) VALUES (hashtextextended(gen_random_uuid()::text, 0)) ON CONFLICT DO NOTHING"
	if _, err := s.write.Exec(ctx, eraSQL); err != nil {
		s.log.Warn("no era of transaction ids was begun", "error", err)
	}
}

// changed notes what a transaction did.
func (s *shard) changed(o *outcome, places int64) {
	s.changes.Add(uint64(o.added + o.removed))
	s.knows(o.base + like.Stamp(places))
}

// knows notes a stamp that was given, in whichever database.
func (s *shard) knows(last like.Stamp) {
	for {
		newest := s.newest.Load()
		if newest >= int64(last) || s.newest.CompareAndSwap(newest, int64(last)) {
			return
		}
	}
}

func (s *shard) committed(c Commit) {
	s.commits.Add(1)
	s.commands.Add(uint64(c.Commands))
	if s.cfg.OnCommit != nil {
		s.cfg.OnCommit(c)
	}
}

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

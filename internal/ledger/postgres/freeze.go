package postgres

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

var _ ledger.Freezer = (*Ledger)(nil)

const (
	// freezeLock is held, shared, by every transaction that changes facts or corrects
	// a total, and alone by one that lets the ledger stand still.
	freezeLock = migrationLock + 2
	// freezerLock is held by whoever holds freezeLock alone, or waits for it.
	freezerLock = migrationLock + 3

	freezeCheck   = time.Second      // between two signs of life of the locks
	freezeTimeout = 10 * time.Second // of one sign

	freezePoll = 10 * time.Millisecond // between two looks for what others drain
)

// errFrozen is the failure of a command that came while the ledger stands still.
var errFrozen = fmt.Errorf("the ledger stands still while it is moved: %w", like.ErrUnavailable)

// Freeze implements [ledger.Freezer] for all nodes: it holds a lock in every
// database, for which no write waits. The locks end with their transactions, so also
// with this process.
func (l *Ledger) Freeze(ctx context.Context, while func(ctx context.Context) error) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	defer context.AfterFunc(l.life, func() { lose(fmt.Errorf("postgres ledger: %w", like.ErrClosed)) })()
	var txs []pgx.Tx
	defer func() {
		for _, tx := range txs {
			unlock(ctx, tx)
		}
	}()
	for _, s := range l.shards {
		tx, err := s.freeze(ctx)
		if err != nil {
			return l.failure(ctx, "freeze", err)
		}
		txs = append(txs, tx)
	}
	return holding(ctx, lose, txs, func(ctx context.Context) error {
		errs := make([]error, len(l.shards))
		l.each(func(s *shard) { errs[s.number] = s.settle(ctx) })
		if err := cmp.Or(errs...); err != nil {
			return l.failure(ctx, "freeze", err)
		}
		return while(ctx)
	})
}

// freeze takes the locks of one database and waits for the writes under way. The
// transaction has a connection of its own, since a standstill may outlast many reads.
func (s *shard) freeze(ctx context.Context) (pgx.Tx, error) {
	conn, err := pgx.ConnectConfig(ctx, s.read.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	var alone bool
	err = tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1) FROM set_config('idle_in_transaction_session_timeout', '0', true)", int64(freezerLock)).Scan(&alone)
	if err == nil && !alone {
		err = errFrozen
	}
	if err == nil {
		_, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(freezeLock))
	}
	if err != nil {
		unlock(ctx, tx)
		return nil, err
	}
	return tx, nil
}

// unlock ends a transaction and its connection, whether or not ctx is done. One that is
// gone holds no lock either.
func unlock(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
	_ = tx.Conn().Close(ctx)
	select {
	case <-tx.Conn().PgConn().CleanupDone(): // a statement that was cut off is cancelled
	case <-ctx.Done():
	}
}

// settle tells the feeds everything that was acknowledged before the standstill:
// it drains whatever waits, and follows what others drained, who may have rows in hand
// that only they can drain. It takes as long as that takes, or until ctx is done.
func (s *shard) settle(ctx context.Context) error {
	for {
		if err := s.drain(ctx); err != nil {
			return err
		}
		var left bool
		if err := s.write.QueryRow(ctx, "SELECT EXISTS (SELECT FROM likewise.outbox)").Scan(&left); err != nil {
			return err
		}
		if !left {
			return s.follow(ctx)
		}
		if !sleep(ctx, freezePoll) {
			return context.Cause(ctx)
		}
	}
}

// holding runs while until it returns or a lock is lost. That the locks were held is
// asked once more behind it: a lock may have been lost just before its end.
func holding(ctx context.Context, lose context.CancelCauseFunc, txs []pgx.Tx, while func(ctx context.Context) error) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watches sync.WaitGroup
	held := make([]error, len(txs))
	for n, tx := range txs {
		watches.Go(func() {
			for live := true; live && held[n] == nil; {
				live = sleep(watching, freezeCheck)
				if held[n] = holds(ctx, tx); held[n] != nil {
					lose(held[n])
				}
			}
		})
	}
	err := while(ctx)
	stop()
	watches.Wait()
	return cmp.Or(err, cmp.Or(held...))
}

// holds reports why the locks of a transaction are lost, or nil.
func holds(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freezeTimeout)
	defer cancel()
	if _, err := tx.Exec(ctx, "SELECT 1"); err != nil {
		return fmt.Errorf("postgres: the standstill was lost: %w: %w", like.ErrUnavailable, err)
	}
	return nil
}

package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

//go:embed sql/audit.sql
var auditSQL string

//go:embed sql/audit_item.sql
var auditItemSQL string

//go:embed sql/repair.sql
var repairSQL string

// repairLock is the advisory lock of whoever corrects totals.
const repairLock = migrationLock + 1

const auditPage = 500 // items of one audit statement

// Audit implements [ledger.Keeper]. The lists are indexes of the facts, which the
// database keeps; amcheck verifies those.
func (l *Ledger) Audit(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
	if err := l.check(ctx); err != nil {
		return ledger.Audit{}, err
	}
	if err := item.Validate(); err != nil {
		return ledger.Audit{}, err
	}
	a, err := l.shard(item).audit(ctx, item, repair)
	return a, l.failure(ctx, "audit", err)
}

func (s *shard) audit(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
	a := ledger.Audit{Item: item}
	err := s.read.QueryRow(ctx, auditItemSQL, itemText(item)).Scan(&a.Facts, &a.Total)
	if err != nil || !repair || !a.Drift() {
		return a, err
	}
	// Beside a lock that only repairs take, the difference is the same for every later
	// snapshot, whatever likes and drains do: it is moved, not set.
	err = pgx.BeginFunc(ctx, s.write, func(tx pgx.Tx) error {
		var open bool
		err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock_shared($1) FROM pg_advisory_xact_lock($2)", int64(freezeLock), int64(repairLock)).Scan(&open)
		if err == nil && !open {
			err = errFrozen
		}
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, auditItemSQL, itemText(item)).Scan(&a.Facts, &a.Total); err != nil || !a.Drift() {
			return err
		}
		a.Repaired = true
		_, err = tx.Exec(ctx, repairSQL, itemText(item), a.Facts-a.Total)
		return err
	})
	return a, err
}

// AuditAll implements [ledger.Keeper], shard by shard in the order of the items' names.
func (l *Ledger) AuditAll(ctx context.Context, repair bool) iter.Seq2[ledger.Audit, error] {
	return func(yield func(ledger.Audit, error) bool) {
		for _, s := range l.shards {
			for position := ""; ; {
				audits, err := l.auditPage(ctx, s, position)
				if err != nil {
					yield(ledger.Audit{}, err)
					return
				}
				for _, a := range audits {
					if repair && a.Drift() {
						a, err = l.Audit(ctx, a.Item, true)
					}
					if !yield(a, err) || err != nil {
						return
					}
				}
				if len(audits) < auditPage {
					break
				}
				position = itemText(audits[len(audits)-1].Item)
			}
		}
	}
}

func (l *Ledger) auditPage(ctx context.Context, s *shard, after string) ([]ledger.Audit, error) {
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	rows, err := s.read.Query(ctx, auditSQL, after, auditPage)
	if err != nil {
		return nil, l.failure(ctx, "audit", err)
	}
	var audits []ledger.Audit
	var item string
	var facts, total int64
	_, err = pgx.ForEachRow(rows, []any{&item, &facts, &total}, func() error {
		audits = append(audits, ledger.Audit{Item: itemOf(item), Facts: facts, Total: total})
		return nil
	})
	return audits, l.failure(ctx, "audit", err)
}

// EraseUser implements [ledger.Keeper].
func (l *Ledger) EraseUser(ctx context.Context, user like.User) (int64, error) {
	return l.unlikeAll(ctx, func() (ledger.Page, error) {
		return l.LikedBy(ctx, user, like.Fact{}, ledger.MaxPage)
	})
}

// RemoveItem implements [ledger.Keeper].
func (l *Ledger) RemoveItem(ctx context.Context, item like.Item) (int64, error) {
	return l.unlikeAll(ctx, func() (ledger.Page, error) {
		return l.Likers(ctx, item, like.Fact{}, ledger.MaxPage)
	})
}

// unlikeAll unlikes page after page until one says that nothing is left.
func (l *Ledger) unlikeAll(ctx context.Context, next func() (ledger.Page, error)) (removed int64, err error) {
	for {
		page, err := next()
		if err != nil {
			return removed, err
		}
		cmds := make([]like.Command, len(page.Facts))
		for k, f := range page.Facts {
			cmds[k] = like.Command{Item: f.Item, User: f.User, Op: like.OpUnlike}
		}
		_, changes, err := l.applyMany(ctx, cmds)
		removed += changes
		if err != nil || !page.More {
			return removed, err
		}
	}
}

const exportSQL = `SELECT item, user_id, since FROM likewise.likes
	WHERE (user_id, item) > ($1, $2) ORDER BY user_id, item LIMIT $3`

// Export implements [ledger.Keeper], shard by shard in the order of the users' names.
func (l *Ledger) Export(ctx context.Context) iter.Seq2[like.Fact, error] {
	return func(yield func(like.Fact, error) bool) {
		for _, s := range l.shards {
			for user, item := "", ""; ; {
				err := l.check(ctx)
				var facts []like.Fact
				if err == nil {
					facts, err = collectFacts(ctx, s.read, exportSQL, user, item, ledger.MaxPage)
					err = l.failure(ctx, "export", err)
				}
				if err != nil {
					yield(like.Fact{}, err)
					return
				}
				for _, f := range facts {
					if !yield(f, nil) {
						return
					}
				}
				if len(facts) < ledger.MaxPage {
					break
				}
				last := facts[len(facts)-1]
				user, item = string(last.User), itemText(last.Item)
			}
		}
	}
}

// Backup returns [errors.ErrUnsupported]: the databases have backups of their own.
func (l *Ledger) Backup(ctx context.Context, _ string) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	return fmt.Errorf("postgres ledger: backup: use pg_basebackup or pg_dump: %w", errors.ErrUnsupported)
}

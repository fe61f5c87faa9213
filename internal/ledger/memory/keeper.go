package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Audit implements [ledger.Keeper]. Changes that have not moved the total yet are
// counted as if they had: a total that only lags is no drift.
func (l *Ledger) Audit(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
	if err := item.Validate(); err != nil {
		return ledger.Audit{}, err
	}
	if err := l.lock(ctx); err != nil {
		return ledger.Audit{}, err
	}
	defer l.mu.Unlock()
	a, listed := l.store.audit(item)
	if repair && a.Drift() {
		if l.thaw != nil {
			return ledger.Audit{}, errFrozen
		}
		l.store.likers[item] = listed
		if a.Total != a.Facts {
			l.broadcast.Publish([]like.Total{l.store.move(item, a.Facts-a.Total)})
		}
		a.Repaired = true
	}
	return a, nil
}

// audit compares one item's facts with its list and total, and returns the list
// as the facts want it.
func (s *store) audit(item like.Item) (ledger.Audit, []like.Fact) {
	a := ledger.Audit{Item: item, Facts: int64(len(s.facts[item])), Total: s.totals[item].Count}
	for _, c := range s.pending {
		if c.item == item {
			a.Total += c.delta
		}
	}
	var listed []like.Fact
	for user, since := range s.facts[item] {
		f := like.Fact{Item: item, User: user, Since: since}
		listed = append(listed, f)
		if _, found := slices.BinarySearchFunc(s.likers[item], f, byUser); !found {
			a.Unlisted++
		}
	}
	a.Phantom = int64(len(s.likers[item])) - (a.Facts - a.Unlisted)
	slices.SortFunc(listed, byUser)
	return a, listed
}

// AuditAll implements [ledger.Keeper], in the order of the items' names.
func (l *Ledger) AuditAll(ctx context.Context, repair bool) iter.Seq2[ledger.Audit, error] {
	return func(yield func(ledger.Audit, error) bool) {
		items, err := l.items(ctx)
		if err != nil {
			yield(ledger.Audit{}, err)
			return
		}
		for _, item := range items {
			a, err := l.Audit(ctx, item, repair)
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

func (l *Ledger) items(ctx context.Context) ([]like.Item, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	all := map[like.Item]struct{}{}
	for item := range l.store.facts {
		all[item] = struct{}{}
	}
	for item := range l.store.likers {
		all[item] = struct{}{}
	}
	for item := range l.store.totals {
		all[item] = struct{}{}
	}
	return slices.SortedFunc(maps.Keys(all), compareItems), nil
}

// EraseUser implements [ledger.Keeper]; all facts go at once.
func (l *Ledger) EraseUser(ctx context.Context, user like.User) (int64, error) {
	if err := user.Validate(); err != nil {
		return 0, err
	}
	if err := l.lockToWrite(ctx); err != nil {
		return 0, err
	}
	defer l.mu.Unlock()
	defer l.settle()
	var erased int64
	for item, users := range l.store.facts {
		if _, liked := users[user]; liked {
			l.apply(like.Command{Item: item, User: user, Op: like.OpUnlike})
			erased++
		}
	}
	return erased, nil
}

// RemoveItem implements [ledger.Keeper]; all facts go at once.
func (l *Ledger) RemoveItem(ctx context.Context, item like.Item) (int64, error) {
	if err := item.Validate(); err != nil {
		return 0, err
	}
	if err := l.lockToWrite(ctx); err != nil {
		return 0, err
	}
	defer l.mu.Unlock()
	defer l.settle()
	users := slices.Sorted(maps.Keys(l.store.facts[item]))
	for _, user := range users {
		l.apply(like.Command{Item: item, User: user, Op: like.OpUnlike})
	}
	return int64(len(users)), nil
}

// Export implements [ledger.Keeper]: the facts as of its start, in no order.
func (l *Ledger) Export(ctx context.Context) iter.Seq2[like.Fact, error] {
	return func(yield func(like.Fact, error) bool) {
		facts, err := l.allFacts(ctx)
		if err != nil {
			yield(like.Fact{}, err)
			return
		}
		for _, f := range facts {
			if ctx.Err() != nil {
				yield(like.Fact{}, context.Cause(ctx))
				return
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

func (l *Ledger) allFacts(ctx context.Context) ([]like.Fact, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	var facts []like.Fact
	for item, users := range l.store.facts {
		for user, since := range users {
			facts = append(facts, like.Fact{Item: item, User: user, Since: since})
		}
	}
	return facts, nil
}

// Backup returns errors.ErrUnsupported: there is no store to copy.
func (l *Ledger) Backup(ctx context.Context, _ string) error {
	if err := l.Ready(ctx); err != nil {
		return err
	}
	return fmt.Errorf("memory ledger: backup: %w", errors.ErrUnsupported)
}

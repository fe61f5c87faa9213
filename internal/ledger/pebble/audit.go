package pebble

import (
	"context"
	"errors"
	"iter"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// correction is what an audit asks the writer to change. Rows are checked again
// by the writer, because commands may have been applied since the snapshot; the
// difference of the total holds whatever was applied meanwhile.
type correction struct {
	item     like.Item
	delta    int64       // facts − total
	phantom  []like.Fact // list entries without a fact
	unlisted []like.Fact // facts without a list entry
}

// Audit implements [ledger.Keeper]. Facts are found through the item's list, so
// facts missing from it are left to AuditAll.
func (l *Ledger) Audit(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
	if err := item.Validate(); err != nil {
		return ledger.Audit{}, err
	}
	end, err := l.calls.begin(ctx)
	if err != nil {
		return ledger.Audit{}, err
	}
	defer end()
	l.repairs.Lock()
	defer l.repairs.Unlock()
	snap := l.db.NewSnapshot()
	a, c, err := l.auditItem(ctx, snap, item, nil)
	if err := errors.Join(err, storeError(snap.Close())); err != nil {
		return ledger.Audit{}, err
	}
	return l.settle(ctx, a, c, repair)
}

// AuditAll implements [ledger.Keeper] at one snapshot of the whole store.
func (l *Ledger) AuditAll(ctx context.Context, repair bool) iter.Seq2[ledger.Audit, error] {
	return func(yield func(ledger.Audit, error) bool) {
		end, err := l.calls.begin(ctx)
		if err != nil {
			yield(ledger.Audit{}, err)
			return
		}
		defer end()
		l.repairs.Lock()
		defer l.repairs.Unlock()
		snap := l.db.NewSnapshot()
		stopped, err := l.auditItems(ctx, snap, repair, yield)
		if err := errors.Join(err, storeError(snap.Close())); err != nil && !stopped {
			yield(ledger.Audit{}, err)
		}
	}
}

func (l *Ledger) auditItems(
	ctx context.Context, snap *pdb.Snapshot, repair bool, yield func(ledger.Audit, error) bool,
) (stopped bool, err error) {
	unlisted, err := l.findUnlisted(ctx, snap)
	if err != nil {
		return false, err
	}
	for item, err := range itemsOf(snap, unlisted) {
		if err != nil {
			return false, err
		}
		a, c, err := l.auditItem(ctx, snap, item, unlisted[item])
		if err == nil {
			a, err = l.settle(ctx, a, c, repair)
		}
		if err != nil {
			return false, err
		}
		if !yield(a, nil) {
			return true, nil
		}
	}
	return false, nil
}

// findUnlisted reads all facts and returns those that their item's list lacks.
func (l *Ledger) findUnlisted(ctx context.Context, snap *pdb.Snapshot) (map[like.Item][]like.Fact, error) {
	unlisted := map[like.Item][]like.Fact{}
	read := 0
	var list []byte
	err := scan(snap, []byte{spaceFact}, []byte{spaceFact + 1}, func(key, value []byte) (bool, error) {
		if read++; read%checkEvery == 0 {
			if err := l.calls.interrupted(ctx); err != nil {
				return false, err
			}
		}
		f, err := parseFact(key, value)
		if err != nil {
			return false, err
		}
		list = listKey(list[:0], appendItem(nil, f.Item), f.Since, appendID(nil, string(f.User)))
		found := false
		err = getValue(snap, list, func([]byte) error { found = true; return nil })
		if !found {
			unlisted[f.Item] = append(unlisted[f.Item], f)
		}
		return true, err
	})
	return unlisted, err
}

// auditItem walks one item's list at a snapshot and compares it with the facts
// and the total.
func (l *Ledger) auditItem(
	ctx context.Context, snap *pdb.Snapshot, item like.Item, unlisted []like.Fact,
) (ledger.Audit, *correction, error) {
	a := ledger.Audit{Item: item, Facts: int64(len(unlisted)), Unlisted: int64(len(unlisted))}
	c := &correction{item: item, unlisted: unlisted}
	err := getValue(snap, totalKey(item), func(value []byte) (err error) {
		a.Total, _, err = parseTotal(value)
		return err
	})
	if err != nil {
		return a, nil, err
	}
	prefix := listPrefix(item)
	read := 0
	err = scan(snap, prefix, prefixEnd(prefix), func(key, _ []byte) (bool, error) {
		if read++; read%checkEvery == 0 {
			if err := l.calls.interrupted(ctx); err != nil {
				return false, err
			}
		}
		f, err := parseList(key)
		if err != nil {
			return false, err
		}
		ok, err := isFact(snap, f)
		if ok {
			a.Facts++
		} else {
			c.phantom = append(c.phantom, f)
		}
		return true, err
	})
	a.Phantom = int64(len(c.phantom))
	c.delta = a.Facts - a.Total
	return a, c, err
}

// isFact reports whether a list entry has its fact, with the same stamp.
func isFact(r pdb.Reader, f like.Fact) (ok bool, err error) {
	err = getValue(r, factKey(nil, f.User, f.Item), func(value []byte) error {
		since, err := parseSince(value)
		ok = since == f.Since
		return err
	})
	return ok, err
}

// settle has the writer correct what an audit found.
func (l *Ledger) settle(ctx context.Context, a ledger.Audit, c *correction, repair bool) (ledger.Audit, error) {
	if !repair || !a.Drift() {
		return a, nil
	}
	r := newRequest(nil)
	r.correct = c
	if err := l.submit(ctx, r); err != nil {
		return a, err
	}
	a.Repaired = true
	return a, nil
}

// correct carries out a correction as part of the batch being folded.
func (f *folder) correct(b *pdb.Batch, c *correction) error {
	t, err := f.total(appendItem(nil, c.item))
	if err != nil {
		return err
	}
	if c.delta != 0 {
		f.move(t, c.item, c.delta, f.clock.Next())
	}
	for _, row := range c.phantom {
		if err := f.correctRow(row, false, b.Delete); err != nil {
			return err
		}
	}
	set := func(key []byte, o *pdb.WriteOptions) error { return b.Set(key, nil, o) }
	for _, row := range c.unlisted {
		if err := f.correctRow(row, true, set); err != nil {
			return err
		}
	}
	return nil
}

// correctRow changes a list entry if the fact is still as the audit saw it.
func (f *folder) correctRow(row like.Fact, isFact bool, change func([]byte, *pdb.WriteOptions) error) error {
	p, err := f.pair(&like.Command{Item: row.Item, User: row.User})
	if err != nil {
		return err
	}
	if (p.then.Liked && p.then.Since == row.Since) != isFact {
		return nil
	}
	f.keys = listKey(f.keys[:0], p.item, row.Since, p.user)
	return storeError(change(f.keys, nil))
}

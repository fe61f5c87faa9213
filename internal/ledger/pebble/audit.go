package pebble

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

const (
	// auditChunk is how many facts are read at one snapshot. An audit of everything
	// can take hours; a snapshot or an iterator that old would keep the engine from
	// dropping what it has rewritten since.
	auditChunk = 16 << 10
	// maxPhantoms is how many list entries one correction removes.
	maxPhantoms = 10_000
)

// correction is what an audit asks the writer to change. Rows are checked again
// by the writer, because commands may have been applied since the snapshot; the
// difference of the total holds whatever was applied meanwhile.
type correction struct {
	item     like.Item
	delta    int64       // facts − total
	phantom  []like.Fact // list entries without a fact, of this item
	unlisted []like.Fact // facts without a list entry, of any item
}

// Audit implements [ledger.Keeper]. Facts are found through the item's list. Only
// when that has fewer than the total says are all facts searched for the item's.
func (l *Ledger) Audit(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
	if err := item.Validate(); err != nil {
		return ledger.Audit{}, err
	}
	end, err := l.beginAudit(ctx)
	if err != nil {
		return ledger.Audit{}, err
	}
	defer end()
	a, c, err := l.inspect(ctx, item)
	if err != nil || a.Total <= a.Facts {
		return l.settle(ctx, a, c, repair, err)
	}
	unlisted, err := l.auditLists(ctx, repair, func(f like.Fact) bool { return f.Item == item })
	if err == nil && unlisted[item] > 0 {
		a, c, err = l.inspectListed(ctx, item, unlisted[item], repair)
	}
	return l.settle(ctx, a, c, repair, err)
}

// AuditAll implements [ledger.Keeper]. It first reads all facts, to find those that
// their item's list lacks, and then audits item by item.
func (l *Ledger) AuditAll(ctx context.Context, repair bool) iter.Seq2[ledger.Audit, error] {
	return func(yield func(ledger.Audit, error) bool) {
		end, err := l.beginAudit(ctx)
		if err != nil {
			yield(ledger.Audit{}, err)
			return
		}
		defer end()
		unlisted, err := l.auditLists(ctx, repair, func(like.Fact) bool { return true })
		if err != nil {
			yield(ledger.Audit{}, err)
			return
		}
		for item, err := range l.items(unlisted) {
			var a ledger.Audit
			if err == nil {
				var c *correction
				a, c, err = l.inspectListed(ctx, item, unlisted[item], repair)
				a, err = l.settle(ctx, a, c, repair, err)
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// beginAudit admits an audit when no other is under way: between what one saw and
// its correction nobody else may correct.
func (l *Ledger) beginAudit(ctx context.Context) (end func(), err error) {
	done, err := l.calls.begin(ctx)
	if err != nil {
		return nil, err
	}
	release, err := l.audits.take(ctx, &l.calls)
	if err != nil {
		done()
		return nil, err
	}
	return func() { release(); done() }, nil
}

// auditLists reads all facts, a chunk at a time and at half speed, and counts by
// item those that the item's list lacks and that are wanted. With repair they are
// listed at once.
func (l *Ledger) auditLists(
	ctx context.Context, repair bool, wanted func(like.Fact) bool,
) (map[like.Item]int64, error) {
	unlisted := map[like.Item]int64{}
	for from := []byte{spaceFact}; from != nil; {
		began := time.Now()
		found, next, err := l.findUnlisted(from, wanted)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			unlisted[f.Item]++
		}
		if repair && len(found) > 0 {
			if err := l.correct(ctx, &correction{unlisted: found}); err != nil {
				return nil, err
			}
		}
		if err := l.calls.rest(ctx, min(time.Since(began), time.Second)); err != nil {
			return nil, err
		}
		from = next
	}
	return unlisted, nil
}

// findUnlisted reads one chunk of facts and returns those that are wanted and that
// their item's list lacks, and where the next chunk begins, nil behind the last.
func (l *Ledger) findUnlisted(from []byte, wanted func(like.Fact) bool) (found []like.Fact, next []byte, err error) {
	snap := l.db.NewSnapshot()
	defer func() { err = errors.Join(err, storeError(snap.Close())) }()
	read := 0
	err = scan(snap, from, []byte{spaceFact + 1}, func(key, value []byte) (bool, error) {
		if read++; read > auditChunk {
			next = append([]byte(nil), key...)
			return false, nil
		}
		f, err := parseFact(key, value)
		if err != nil || !wanted(f) {
			return true, err
		}
		listed := false
		row := listKey(nil, appendItem(nil, f.Item), f.Since, appendID(nil, string(f.User)))
		err = getValue(snap, row, func([]byte) error { listed = true; return nil })
		if !listed {
			found = append(found, f)
		}
		return true, err
	})
	return found, next, err
}

// inspectListed inspects an item of whose facts some were not listed. Those that
// were only counted, not repaired, are facts all the same.
func (l *Ledger) inspectListed(
	ctx context.Context, item like.Item, unlisted int64, repaired bool,
) (ledger.Audit, *correction, error) {
	a, c, err := l.inspect(ctx, item)
	a.Unlisted = unlisted
	if !repaired {
		a.Facts += unlisted
	}
	return a, c, err
}

// inspect walks one item's list at a snapshot and compares it with the facts and
// the total.
func (l *Ledger) inspect(ctx context.Context, item like.Item) (a ledger.Audit, c *correction, err error) {
	snap := l.db.NewSnapshot()
	defer func() { err = errors.Join(err, storeError(snap.Close())) }()
	a, c = ledger.Audit{Item: item}, &correction{item: item}
	err = getValue(snap, totalKey(item), func(value []byte) (err error) {
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
		switch {
		case ok:
			a.Facts++
		case err == nil:
			a.Phantom++
			if len(c.phantom) < maxPhantoms {
				c.phantom = append(c.phantom, f)
			}
		}
		return true, err
	})
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

// settle has the writer correct what was found, if it is to be repaired and was
// found without an error.
func (l *Ledger) settle(
	ctx context.Context, a ledger.Audit, c *correction, repair bool, err error,
) (ledger.Audit, error) {
	if err != nil || !repair || !a.Drift() {
		return a, err
	}
	for left := a.Phantom; ; {
		if err := l.correct(ctx, c); err != nil {
			return a, fmt.Errorf("correct %v: %w", a.Item, err)
		}
		if left -= int64(len(c.phantom)); left <= 0 || len(c.phantom) == 0 {
			a.Repaired = true
			return a, nil
		}
		if _, c, err = l.inspect(ctx, a.Item); err != nil {
			return a, err
		}
	}
}

func (l *Ledger) correct(ctx context.Context, c *correction) error {
	_, err := l.submitPatiently(ctx, func() *request {
		r := newRequest(nil)
		r.correct = c
		return r
	})
	return err
}

// correct carries out a correction as part of the batch being folded.
func (f *folder) correct(b *pdb.Batch, c *correction) error {
	if c.delta != 0 {
		t, err := f.total(appendItem(nil, c.item))
		if err != nil {
			return err
		}
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

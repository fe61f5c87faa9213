package pebble

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// eraseChunk is how many unlikes of an erasure go to the writer at a time.
const eraseChunk = 500

// Feed implements [ledger.Feeder].
func (l *Ledger) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return l.changes.Feed(ctx)
}

// EraseUser implements [ledger.Keeper].
func (l *Ledger) EraseUser(ctx context.Context, user like.User) (int64, error) {
	if err := user.Validate(); err != nil {
		return 0, err
	}
	return l.unlikeAll(ctx, userPrefix(user), parseFact)
}

// RemoveItem implements [ledger.Keeper].
func (l *Ledger) RemoveItem(ctx context.Context, item like.Item) (int64, error) {
	if err := item.Validate(); err != nil {
		return 0, err
	}
	parse := func(key, _ []byte) (like.Fact, error) { return parseList(key) }
	return l.unlikeAll(ctx, listPrefix(item), parse)
}

// unlikeAll unlikes every fact found under prefix when the call began.
func (l *Ledger) unlikeAll(
	ctx context.Context, prefix []byte, parse func(key, value []byte) (like.Fact, error),
) (removed int64, err error) {
	end, err := l.calls.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	cmds := make([]like.Command, 0, eraseChunk)
	flush := func() error {
		n, err := l.unlikeChunk(ctx, cmds)
		removed += n
		cmds = cmds[:0]
		return err
	}
	err = scan(l.db, prefix, prefixEnd(prefix), func(key, value []byte) (bool, error) {
		f, err := parse(key, value)
		if err != nil {
			return false, err
		}
		cmds = append(cmds, like.Command{Item: f.Item, User: f.User, Op: like.OpUnlike})
		if len(cmds) < eraseChunk {
			return true, nil
		}
		return true, flush()
	})
	if err == nil && len(cmds) > 0 {
		err = flush()
	}
	return removed, err
}

// unlikeChunk applies unlikes and returns how many facts that removed.
func (l *Ledger) unlikeChunk(ctx context.Context, cmds []like.Command) (int64, error) {
	r, err := l.submitPatiently(ctx, func() *request { return newRequest(slices.Clone(cmds)) })
	if err != nil {
		return 0, err // the writer may still be at work on the request
	}
	return int64(r.changes), nil
}

// submitPatiently submits a request for an operator, giving way to other callers
// while the queue is full. It returns the request that was carried out.
func (l *Ledger) submitPatiently(ctx context.Context, build func() *request) (*request, error) {
	for {
		r := build()
		err := l.submit(ctx, r)
		if !errors.Is(err, like.ErrOverloaded) {
			return r, err
		}
		if err := l.calls.rest(ctx, l.cfg.QueueAge/10); err != nil {
			return nil, err
		}
	}
}

// Export implements [ledger.Keeper]: the facts at one point, user by user.
func (l *Ledger) Export(ctx context.Context) iter.Seq2[like.Fact, error] {
	return func(yield func(like.Fact, error) bool) {
		end, err := l.calls.begin(ctx)
		if err != nil {
			yield(like.Fact{}, err)
			return
		}
		defer end()
		read, stopped := 0, false
		err = scan(l.db, []byte{spaceFact}, []byte{spaceFact + 1}, func(key, value []byte) (bool, error) {
			if read++; read%checkEvery == 0 {
				if err := l.calls.interrupted(ctx); err != nil {
					return false, err
				}
			}
			f, err := parseFact(key, value)
			if err != nil {
				return false, err
			}
			stopped = !yield(f, nil)
			return !stopped, nil
		})
		if err != nil && !stopped {
			yield(like.Fact{}, err)
		}
	}
}

// Backup implements [ledger.Keeper] with a checkpoint of the engine: files that
// no longer change are linked, so it is quick and takes little space.
func (l *Ledger) Backup(ctx context.Context, dir string) error {
	end, err := l.calls.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	release, err := l.backups.take(ctx, &l.calls)
	if err != nil {
		return err
	}
	defer release()
	fsys := l.cfg.FS
	if _, err := fsys.Stat(dir); err == nil {
		return fmt.Errorf("%w: %s exists already; a backup needs a new directory", like.ErrInvalid, dir)
	}
	if err := makeDir(fsys, dir); err != nil {
		return err
	}
	acked := l.marker.acked.Load()
	err = l.checkpoint(fsys.PathJoin(dir, engineDir))
	if err == nil {
		err = createMarker(fsys, dir, acked)
	}
	if err != nil {
		return storeError(errors.Join(err, fsys.RemoveAll(dir)))
	}
	return nil
}

// checkpoint copies the engine's files. The engine panics when a directory of the copy
// cannot be synced; that must not harm the store.
func (l *Ledger) checkpoint(dir string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("backup: %v", p)
		}
	}()
	return l.db.Checkpoint(dir, pdb.WithFlushedWAL())
}

var _ ledger.Keeper = (*Ledger)(nil)

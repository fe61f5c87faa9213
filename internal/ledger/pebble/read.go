package pebble

import (
	"bytes"
	"context"
	"errors"
	"slices"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Liked implements [ledger.Reader].
func (l *Ledger) Liked(ctx context.Context, user like.User, items []like.Item) ([]like.State, error) {
	end, err := l.calls.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := errors.Join(user.Validate(), ledger.CheckItems(items)); err != nil {
		return nil, err
	}
	states := make([]like.State, len(items))
	keys := make([][]byte, len(items))
	for i, it := range items {
		keys[i] = factKey(nil, user, it)
	}
	err = seekEach(l.db, userPrefix(user), keys, func(i int, value []byte) error {
		since, err := parseSince(value)
		states[i] = like.State{Liked: true, Since: since}
		return err
	})
	return states, err
}

// Totals implements [ledger.Reader].
func (l *Ledger) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	end, err := l.calls.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := ledger.CheckItems(items); err != nil {
		return nil, err
	}
	totals := make([]like.Total, len(items))
	for i, it := range items {
		if totals[i], err = readTotal(l.db, it); err != nil {
			return nil, err
		}
	}
	return totals, nil
}

// readTotal reads one total. What damage may have made negative is shown as 0;
// the audit reports it.
func readTotal(r pdb.Reader, it like.Item) (like.Total, error) {
	t := like.Total{Item: it}
	err := getValue(r, totalKey(it), func(value []byte) (err error) {
		t.Count, t.Version, err = parseTotal(value)
		return err
	})
	t.Count = max(t.Count, 0)
	return t, err
}

// LikersAmong implements [ledger.Reader].
func (l *Ledger) LikersAmong(ctx context.Context, item like.Item, users []like.User) ([]like.User, error) {
	end, err := l.calls.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := errors.Join(item.Validate(), ledger.CheckUsers(users)); err != nil {
		return nil, err
	}
	asked := make(map[like.User]bool, len(users))
	var among []like.User
	for _, u := range users {
		if asked[u] {
			continue
		}
		asked[u] = true
		err := getValue(l.db, factKey(nil, u, item), func([]byte) error {
			among = append(among, u)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return among, nil
}

// getValue calls use with the value of key, valid during the call, unless the
// key is absent.
func getValue(r pdb.Reader, key []byte, use func(value []byte) error) error {
	value, closer, err := r.Get(key)
	if errors.Is(err, pdb.ErrNotFound) {
		return nil
	}
	if err != nil {
		return storeError(err)
	}
	return errors.Join(use(value), storeError(closer.Close()))
}

// seekEach calls use with the index and value of every key that exists. All keys
// share the prefix. One iterator moves over them in order, which costs less than
// a lookup each.
func seekEach(r pdb.Reader, prefix []byte, keys [][]byte, use func(i int, value []byte) error) error {
	if len(keys) == 0 {
		return nil
	}
	if len(keys) == 1 {
		return getValue(r, keys[0], func(value []byte) error { return use(0, value) })
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	it, err := r.NewIter(&pdb.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return storeError(err)
	}
	for _, i := range order {
		if !it.SeekGE(keys[i]) {
			// The next seek would forget the error.
			if err := it.Error(); err != nil {
				return errors.Join(storeError(err), it.Close())
			}
			continue
		}
		if !bytes.Equal(it.Key(), keys[i]) {
			continue
		}
		if err := use(i, it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return storeError(errors.Join(it.Error(), it.Close()))
}

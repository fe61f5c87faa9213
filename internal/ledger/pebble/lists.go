package pebble

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// checkEvery is how many rows a long scan reads between looks at its context.
const checkEvery = 4096

// Likers implements [ledger.Reader].
func (l *Ledger) Likers(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
	end, err := l.calls.begin(ctx)
	if err != nil {
		return ledger.Page{}, err
	}
	defer end()
	if err := errors.Join(item.Validate(), ledger.CheckPage(n)); err != nil {
		return ledger.Page{}, err
	}
	prefix := listPrefix(item)
	from := prefix
	if after != (like.Fact{}) {
		from = listKey(nil, prefix[1:], after.Since, appendID(nil, string(after.User)))
		from = append(from, 0) // just behind the position
	}
	page := ledger.Page{Facts: make([]like.Fact, 0, n)}
	err = scan(l.db, from, prefixEnd(prefix), func(key, _ []byte) (bool, error) {
		if len(page.Facts) == n {
			page.More = true
			return false, nil
		}
		f, err := parseList(key)
		page.Facts = append(page.Facts, f)
		return true, err
	})
	return page, err
}

// LikedBy implements [ledger.Reader]. It reads all facts of the user and keeps
// the newest behind the position.
func (l *Ledger) LikedBy(ctx context.Context, user like.User, after like.Fact, n int) (ledger.Page, error) {
	end, err := l.calls.begin(ctx)
	if err != nil {
		return ledger.Page{}, err
	}
	defer end()
	if err := errors.Join(user.Validate(), ledger.CheckPage(n)); err != nil {
		return ledger.Page{}, err
	}
	newest := newestRows{keep: n + 1}
	if after != (like.Fact{}) {
		newest.after = &row{since: after.Since, item: appendItem(nil, after.Item)}
	}
	prefix := userPrefix(user)
	read := 0
	err = scan(l.db, prefix, prefixEnd(prefix), func(key, value []byte) (bool, error) {
		if read++; read%checkEvery == 0 {
			if err := l.calls.interrupted(ctx); err != nil {
				return false, err
			}
		}
		since, err := parseSince(value)
		newest.add(since, key[len(prefix):])
		return true, err
	})
	if err != nil {
		return ledger.Page{}, err
	}
	return newest.page(user, n)
}

// row is a fact of one user: when, and the stored form of the item.
type row struct {
	since like.Stamp
	item  []byte
}

// compare orders rows newest first, then by item.
func (r row) compare(o row) int {
	if c := cmp.Compare(o.since, r.since); c != 0 {
		return c
	}
	return bytes.Compare(r.item, o.item)
}

// newestRows keeps the first rows behind a position, as a heap whose root is the
// last of them.
type newestRows struct {
	keep  int
	after *row
	rows  []row
}

func (h *newestRows) Len() int           { return len(h.rows) }
func (h *newestRows) Less(i, j int) bool { return h.rows[i].compare(h.rows[j]) > 0 }
func (h *newestRows) Swap(i, j int)      { h.rows[i], h.rows[j] = h.rows[j], h.rows[i] }
func (h *newestRows) Push(x any)         { h.rows = append(h.rows, x.(row)) }
func (h *newestRows) Pop() any {
	last := h.rows[len(h.rows)-1]
	h.rows = h.rows[:len(h.rows)-1]
	return last
}

// add offers a row. The item bytes stay the caller's.
func (h *newestRows) add(since like.Stamp, item []byte) {
	r := row{since: since, item: item}
	if h.after != nil && r.compare(*h.after) <= 0 {
		return
	}
	full := len(h.rows) == h.keep
	if full && r.compare(h.rows[0]) > 0 {
		return
	}
	r.item = bytes.Clone(item)
	if !full {
		heap.Push(h, r)
		return
	}
	h.rows[0] = r
	heap.Fix(h, 0)
}

// page empties the heap into a page of at most n facts.
func (h *newestRows) page(user like.User, n int) (ledger.Page, error) {
	page := ledger.Page{More: len(h.rows) > n}
	if page.More {
		heap.Pop(h)
	}
	page.Facts = make([]like.Fact, len(h.rows))
	for i := len(h.rows) - 1; i >= 0; i-- {
		r := heap.Pop(h).(row)
		item, _, err := cutItem(r.item)
		if err != nil {
			return ledger.Page{}, err
		}
		page.Facts[i] = like.Fact{Item: item, User: user, Since: r.since}
	}
	return page, nil
}

// scan calls use with each key and value in [from, to), valid during the call,
// until use returns false or an error. What use does may end in a panic.
func scan(r pdb.Reader, from, to []byte, use func(key, value []byte) (bool, error)) (err error) {
	it, err := r.NewIter(&pdb.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return storeError(err)
	}
	defer func() { err = errors.Join(err, storeError(it.Close())) }()
	for more := it.First(); more; more = it.Next() {
		goOn, err := use(it.Key(), it.Value())
		if err != nil || !goOn {
			return err
		}
	}
	return storeError(it.Error())
}

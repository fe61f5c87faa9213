package pebble

import (
	"bytes"
	"errors"
	"iter"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/like"
)

// itemsOf yields every item with a total or a list entry, and those of extra,
// each once.
func itemsOf(r pdb.Reader, extra map[like.Item][]like.Fact) iter.Seq2[like.Item, error] {
	return func(yield func(like.Item, error) bool) {
		totals, err := newItemCursor(r, spaceTotal)
		if err != nil {
			yield(like.Item{}, err)
			return
		}
		lists, err := newItemCursor(r, spaceList)
		if err != nil {
			yield(like.Item{}, errors.Join(err, totals.close()))
			return
		}
		err = mergeItems(totals, lists, extra, yield)
		if err = errors.Join(err, totals.close(), lists.close()); err != nil {
			yield(like.Item{}, err)
		}
	}
}

func mergeItems(
	a, b *itemCursor, extra map[like.Item][]like.Fact, yield func(like.Item, error) bool,
) error {
	seen := map[like.Item]bool{}
	for a.valid() || b.valid() {
		c := a
		if !a.valid() || b.valid() && bytes.Compare(b.item, a.item) < 0 {
			c = b
		}
		item, _, err := cutItem(c.item)
		if err != nil {
			return err
		}
		part := bytes.Clone(c.item)
		a.skip(part)
		b.skip(part)
		if _, ok := extra[item]; ok {
			seen[item] = true
		}
		if !yield(item, nil) {
			return nil
		}
	}
	for item := range extra {
		if !seen[item] && !yield(item, nil) {
			return nil
		}
	}
	return nil
}

// itemCursor moves over a key space whose keys begin with an item, from item to
// item.
type itemCursor struct {
	it   *pdb.Iterator
	item []byte // stored form of the item at the cursor; nil at the end
	err  error
}

func newItemCursor(r pdb.Reader, space byte) (*itemCursor, error) {
	it, err := r.NewIter(&pdb.IterOptions{LowerBound: []byte{space}, UpperBound: []byte{space + 1}})
	if err != nil {
		return nil, storeError(err)
	}
	c := &itemCursor{it: it}
	c.take(it.First())
	return c, nil
}

func (c *itemCursor) valid() bool { return c.item != nil }

func (c *itemCursor) take(ok bool) {
	c.item = nil
	if !ok {
		return
	}
	key := c.it.Key()[1:]
	_, rest, err := cutItem(key)
	if err != nil {
		c.err = err
		return
	}
	c.item = key[:len(key)-len(rest)]
}

// skip moves behind an item if the cursor is at it.
func (c *itemCursor) skip(item []byte) {
	if bytes.Equal(c.item, item) {
		space := c.it.Key()[0]
		c.take(c.it.SeekGE(prefixEnd(append([]byte{space}, item...))))
	}
}

func (c *itemCursor) close() error {
	return errors.Join(c.err, storeError(errors.Join(c.it.Error(), c.it.Close())))
}

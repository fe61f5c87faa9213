package pebble

import (
	"bytes"
	"iter"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/like"
)

// items yields every item with a total or a list entry, and then those of extra
// that have neither, each once. Nothing is held open in between.
func (l *Ledger) items(extra map[like.Item]int64) iter.Seq2[like.Item, error] {
	return func(yield func(like.Item, error) bool) {
		seen := map[like.Item]bool{}
		for part, err := nextItem(l.db, nil); part != nil || err != nil; part, err = nextItem(l.db, part) {
			var item like.Item
			if err == nil {
				item, _, err = cutItem(part)
			}
			if _, ok := extra[item]; ok {
				seen[item] = true
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
		for item := range extra {
			if !seen[item] && !yield(item, nil) {
				return
			}
		}
	}
}

// nextItem returns the stored form of the first item behind another that has a
// total or a list entry, or nil.
func nextItem(r pdb.Reader, after []byte) (next []byte, err error) {
	for _, space := range []byte{spaceTotal, spaceList} {
		from := []byte{space}
		if after != nil {
			from = prefixEnd(append(from, after...))
		}
		err := scan(r, from, []byte{space + 1}, func(key, _ []byte) (bool, error) {
			_, rest, err := cutItem(key[1:])
			if err != nil {
				return false, err
			}
			part := key[1 : len(key)-len(rest)]
			if next == nil || bytes.Compare(part, next) < 0 {
				next = bytes.Clone(part)
			}
			return false, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return next, nil
}

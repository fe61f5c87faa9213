package move

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// pass compares the lists of items and sends the target what differs. It returns
// the items that differed, which must be compared again: the order in which one
// user's changes are found is not always that in which they have to be made.
func (m *mover) pass(ctx context.Context, items []like.Item) ([]like.Item, error) {
	defer m.show.stage("comparing items")()
	var mu sync.Mutex
	var differed []like.Item
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan like.Item)
	group.Go(func() error {
		defer close(next)
		for _, item := range items {
			select {
			case next <- item:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range min(m.cfg.InFlight, len(items)) {
		group.Go(func() error {
			f := &fixer{mover: m}
			for item := range next {
				differs, err := f.compare(ctx, item)
				if err != nil {
					return err
				}
				if differs {
					mu.Lock()
					differed = append(differed, item)
					mu.Unlock()
				}
				m.show.count(1)
			}
			return f.flush(ctx)
		})
	}
	return differed, group.Wait()
}

// fixer compares one item after the other and gathers what the target must be told.
type fixer struct {
	*mover
	cmds []like.Command
}

// compare merges the two lists of one item: newest first, and within one time
// in an order that each ledger chooses for itself.
func (f *fixer) compare(ctx context.Context, item like.Item) (differs bool, err error) {
	source := &walk{mover: f.mover, of: f.source, item: item, more: true}
	target := &walk{mover: f.mover, of: f.target, item: item, more: true}
	for {
		since, err := newest(ctx, source, target)
		if err != nil || since == 0 {
			return differs, err
		}
		wanted, err := source.at(ctx, since)
		if err != nil {
			return differs, err
		}
		held, err := target.at(ctx, since)
		if err != nil {
			return differs, err
		}
		missing, extra := difference(wanted, held)
		for _, user := range missing {
			f.cmds = append(f.cmds, like.Command{Item: item, User: user, Op: like.OpLike, At: since})
		}
		for _, user := range extra {
			f.cmds = append(f.cmds, like.Command{Item: item, User: user, Op: like.OpUnlike})
		}
		differs = differs || len(missing)+len(extra) > 0
		if len(f.cmds) >= f.cfg.BatchSize {
			if err := f.flush(ctx); err != nil {
				return differs, err
			}
		}
	}
}

// flush sends what was gathered. Unlikes go first, because a like of somebody who
// likes the item already would keep the other time.
func (f *fixer) flush(ctx context.Context) error {
	slices.SortStableFunc(f.cmds, func(a, b like.Command) int { return cmp.Compare(b.Op, a.Op) })
	for batch := range slices.Chunk(f.cmds, f.cfg.BatchSize) {
		if err := f.apply(ctx, batch); err != nil {
			return err
		}
		f.changed.Add(int64(len(batch)))
	}
	f.cmds = f.cmds[:0]
	return nil
}

// difference returns the users that only one of two sets has. The sets are sorted.
func difference(wanted, held []like.User) (missing, extra []like.User) {
	if slices.Equal(wanted, held) {
		return nil, nil
	}
	for len(wanted) > 0 || len(held) > 0 {
		switch {
		case len(held) == 0 || len(wanted) > 0 && wanted[0] < held[0]:
			missing, wanted = append(missing, wanted[0]), wanted[1:]
		case len(wanted) == 0 || held[0] < wanted[0]:
			extra, held = append(extra, held[0]), held[1:]
		default:
			wanted, held = wanted[1:], held[1:]
		}
	}
	return missing, extra
}

// walk reads the list of one item, page by page.
type walk struct {
	*mover
	of    Lister
	item  like.Item
	page  []like.Fact // not taken yet
	after like.Fact
	more  bool
	users []like.User // of the last at
}

// head returns the next fact, or false at the end of the list.
func (w *walk) head(ctx context.Context) (like.Fact, bool, error) {
	if len(w.page) == 0 && w.more {
		var page ledger.Page
		err := w.patiently(ctx, func() (err error) {
			page, err = w.of.Likers(ctx, w.item, w.after, ledger.MaxPage)
			return err
		})
		if err != nil {
			return like.Fact{}, false, err
		}
		if w.page, w.more = page.Facts, page.More; len(w.page) > 0 {
			w.after = w.page[len(w.page)-1]
		}
	}
	if len(w.page) == 0 {
		return like.Fact{}, false, nil
	}
	return w.page[0], true, nil
}

// at takes the facts of one time, which is that of the head or later, and returns
// their users, sorted. They are valid until the next call.
func (w *walk) at(ctx context.Context, since like.Stamp) ([]like.User, error) {
	w.users = w.users[:0]
	for {
		f, ok, err := w.head(ctx)
		if err != nil {
			return nil, err
		}
		if !ok || f.Since != since {
			slices.Sort(w.users)
			return w.users, nil
		}
		w.users = append(w.users, f.User)
		w.page = w.page[1:]
	}
}

// newest returns the newest time at the heads of two walks, or 0 at the end of both.
func newest(ctx context.Context, a, b *walk) (like.Stamp, error) {
	x, more, err := a.head(ctx)
	if err != nil {
		return 0, err
	}
	y, moreToo, err := b.head(ctx)
	switch {
	case err != nil:
		return 0, err
	case more && moreToo:
		return max(x.Since, y.Since), nil
	case more:
		return x.Since, nil
	default:
		return y.Since, nil
	}
}

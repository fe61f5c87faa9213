package conformance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// renames lets a mutant take items for one another wherever they are named.
func renames(rename func(id string) string) func(*broken) {
	item := func(i like.Item) like.Item { return like.Item{Collection: i.Collection, ID: rename(i.ID)} }
	items := func(in []like.Item) []like.Item {
		out := make([]like.Item, len(in))
		for k := range in {
			out[k] = item(in[k])
		}
		return out
	}
	return func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			cmd.Item = item(cmd.Item)
			return b.Ledger.Apply(ctx, cmd)
		}
		b.liked = func(ctx context.Context, u like.User, in []like.Item) ([]like.State, error) {
			return b.Ledger.Liked(ctx, u, items(in))
		}
		b.totals = func(ctx context.Context, in []like.Item) ([]like.Total, error) {
			totals, err := b.Ledger.Totals(ctx, items(in))
			for k := range totals {
				totals[k].Item = in[k]
			}
			return totals, err
		}
		b.likers = func(ctx context.Context, i like.Item, after like.Fact, n int) (ledger.Page, error) {
			page, err := b.Ledger.Likers(ctx, item(i), after, n)
			for k := range page.Facts {
				page.Facts[k].Item = i
			}
			return page, err
		}
	}
}

// decimal keeps an id that looks like a number as 64 bits.
func decimal(id string) string {
	if n, err := strconv.ParseUint(id, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return strconv.FormatUint(n, 10)
	}
	return id
}

var readMutants = []mutant{
	{"R1", "takes own states from the totals", lagging, func(b *broken) {
		b.liked = func(ctx context.Context, u like.User, items []like.Item) ([]like.State, error) {
			states, err := b.Ledger.Liked(ctx, u, items)
			for k := range states {
				if b.count(items[k]) == 0 {
					states[k] = like.State{}
				}
			}
			return states, err
		}
	}},
	{"R2", "answers totals in its own order", 0, func(b *broken) {
		b.totals = func(ctx context.Context, items []like.Item) ([]like.Total, error) {
			items = slices.Clone(items)
			slices.SortFunc(items, func(a, b like.Item) int { return cmp.Compare(a.ID, b.ID) })
			return b.Ledger.Totals(ctx, items)
		}
	}},
	{"R3", "gives two counts one version", 0, func(b *broken) {
		b.totals = func(ctx context.Context, items []like.Item) ([]like.Total, error) {
			totals, err := b.Ledger.Totals(ctx, items)
			for k := range totals {
				totals[k].Version = (totals[k].Version + 1) / 2
			}
			return totals, err
		}
	}},
	{"R3", "clamps a count at zero where it is kept", 0, clampsWhereKept},
	{"R4", "forgets an index entry", 0, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			ack, err := b.Ledger.Apply(ctx, cmd)
			if cmd.User == "u17" {
				b.Unlist(cmd.Item, cmd.User)
			}
			return ack, err
		}
	}},
	{"R4", "turns a page around", 0, func(b *broken) {
		b.likers = func(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
			page, err := b.Ledger.Likers(ctx, item, after, n)
			slices.Reverse(page.Facts)
			return page, err
		}
	}},
	{"R4", "skips equal stamps at a page's edge", 0, func(b *broken) {
		b.likers = func(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
			after.User = ""
			return b.Ledger.Likers(ctx, item, after, n)
		}
	}},
	{"R4 R5", "pages by offset", 0, func(b *broken) {
		offset := 0
		b.likers = func(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
			if after == (like.Fact{}) {
				offset = 0
			}
			page, err := b.Ledger.Likers(ctx, item, like.Fact{}, ledger.MaxPage)
			all := page.Facts[min(offset, len(page.Facts)):]
			facts := all[:min(n, len(all))]
			offset += len(facts)
			return ledger.Page{Facts: facts, More: len(all) > len(facts)}, err
		}
	}},
	{"R5", "needs the fact at the position", 0, func(b *broken) {
		b.likers = func(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
			if after != (like.Fact{}) && b.state(after.User, item).Since != after.Since {
				return ledger.Page{}, nil
			}
			return b.Ledger.Likers(ctx, item, after, n)
		}
	}},
	{"R6", "shows a like in its user's list only after the next one", 0, func(b *broken) {
		var mu sync.Mutex
		newest := like.Stamp(0)
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			ack, err := b.Ledger.Apply(ctx, cmd)
			mu.Lock()
			defer mu.Unlock()
			newest = max(newest, ack.State.Since)
			return ack, err
		}
		b.likedBy = func(ctx context.Context, u like.User, after like.Fact, n int) (ledger.Page, error) {
			page, err := b.Ledger.LikedBy(ctx, u, after, n)
			mu.Lock()
			defer mu.Unlock()
			page.Facts = slices.DeleteFunc(page.Facts, func(f like.Fact) bool { return f.Since == newest })
			return page, err
		}
	}},
	{"R7", "names a user as often as asked", 0, func(b *broken) {
		b.likersAmong = func(ctx context.Context, item like.Item, users []like.User) ([]like.User, error) {
			var all []like.User
			for _, u := range users {
				found, err := b.Ledger.LikersAmong(ctx, item, []like.User{u})
				if err != nil {
					return nil, err
				}
				all = append(all, found...)
			}
			return all, nil
		}
	}},
	{"R8", "serves less than asked instead of refusing", 0, func(b *broken) {
		b.totals = func(ctx context.Context, items []like.Item) ([]like.Total, error) {
			return b.Ledger.Totals(ctx, items[:min(len(items), ledger.MaxItems)])
		}
	}},
	{"R9", "ignores case", 0, renames(strings.ToLower)},
	{"R9", "keeps numbers as 64 bits", 0, renames(decimal)},
	{"R9", "trims spaces", 0, renames(func(id string) string { return cmp.Or(strings.TrimSpace(id), id) })},
	{"R9", "joins user and item with a colon", 0, func(b *broken) {
		split := func(u like.User, i like.Item) (like.User, like.Item) {
			head, tail, _ := strings.Cut(string(u)+":"+i.ID, ":")
			if head == "" || tail == "" {
				return u, i
			}
			return like.User(head), like.Item{Collection: i.Collection, ID: tail}
		}
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			cmd.User, cmd.Item = split(cmd.User, cmd.Item)
			return b.Ledger.Apply(ctx, cmd)
		}
		b.liked = func(ctx context.Context, u like.User, items []like.Item) ([]like.State, error) {
			states := make([]like.State, len(items))
			for k := range items {
				states[k] = b.state(split(u, items[k]))
			}
			return states, nil
		}
	}},
	{"R10", "answers zero instead of an error", 0, func(b *broken) {
		b.totals = func(ctx context.Context, items []like.Item) ([]like.Total, error) {
			totals, err := b.Ledger.Totals(ctx, items)
			if err != nil {
				return make([]like.Total, len(items)), nil
			}
			return totals, nil
		}
	}},
}

// clampsWhereKept adds a like to its count only when somebody looks or another
// command comes, and an unlike at once, but never below zero.
func clampsWhereKept(b *broken) {
	var mu sync.Mutex
	counts, late := map[like.Item]int64{}, map[like.Item]int64{}
	b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
		mu.Lock()
		defer mu.Unlock()
		_, delta := like.Fold(b.state(cmd.User, cmd.Item), cmd.Op, 1)
		if delta > 0 {
			late[cmd.Item]++
		} else {
			counts[cmd.Item] = max(counts[cmd.Item]+int64(delta), 0)
		}
		return b.Ledger.Apply(ctx, cmd)
	}
	b.totals = func(ctx context.Context, items []like.Item) ([]like.Total, error) {
		totals, err := b.Ledger.Totals(ctx, items)
		mu.Lock()
		defer mu.Unlock()
		for k := range totals {
			item := totals[k].Item
			counts[item] += late[item]
			late[item] = 0
			totals[k].Count = counts[item]
		}
		return totals, err
	}
}

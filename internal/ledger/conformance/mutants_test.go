package conformance

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

// lagging is the lag of mutants that are only wrong while totals lag.
const lagging = 20 * time.Millisecond

// mutant is one way to be wrong and the rules that have to notice it.
type mutant struct {
	rules, name string
	lag         time.Duration
	mutate      func(*broken)
}

// mutants are the broken ledgers: writing and closing here, reading, feeding and
// keeping in the lists that are appended.
var mutants = slices.Concat([]mutant{
	{"C1", "reads on after Close", 0, func(b *broken) {
		b.liked = func(ctx context.Context, u like.User, items []like.Item) ([]like.State, error) {
			states, err := b.Ledger.Liked(ctx, u, items)
			if errors.Is(err, like.ErrClosed) {
				return make([]like.State, len(items)), nil
			}
			return states, err
		}
	}},
	{"C2 W1", "loses an acknowledged like on reopen", 0, func(b *broken) {
		var mu sync.Mutex
		var first like.Command
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			mu.Lock()
			first = cmp.Or(first, cmd)
			mu.Unlock()
			return b.Ledger.Apply(ctx, cmd)
		}
		b.reopened = func(next *memory.Ledger) {
			mu.Lock()
			defer mu.Unlock()
			first.Op = like.OpUnlike
			_, _ = next.Apply(context.Background(), first)
		}
	}},
	{"W2", "counts a repeat", 0, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			if cmd.Op == like.OpLike && b.state(cmd.User, cmd.Item).Liked {
				b.Skew(cmd.Item, 1)
			}
			return b.Ledger.Apply(ctx, cmd)
		}
	}},
	{"W2", "counts an unlike of what nobody liked", 0, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			if cmd.Op == like.OpUnlike && !b.state(cmd.User, cmd.Item).Liked {
				b.Skew(cmd.Item, -1)
			}
			return b.Ledger.Apply(ctx, cmd)
		}
	}},
	{"W3", "checks first and counts later", 0, func(b *broken) {
		b.countsItself(func(ctx context.Context, cmd like.Command, count func(delta int)) (ledger.Ack, error) {
			before := b.state(cmd.User, cmd.Item)
			runtime.Gosched() // whoever comes now sees the same state
			_, delta := like.Fold(before, cmd.Op, 1)
			count(delta)
			return b.Ledger.Apply(ctx, cmd)
		})
	}},
	{"W4", "acknowledges an unlike before it is folded", 0, func(b *broken) {
		var mu sync.Mutex
		held := map[like.User]like.Command{}
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			mu.Lock()
			late, ok := held[cmd.User]
			delete(held, cmd.User)
			if !ok && cmd.Op == like.OpUnlike {
				held[cmd.User] = cmd
				mu.Unlock()
				return ledger.Ack{}, nil
			}
			mu.Unlock()
			ack, err := b.Ledger.Apply(ctx, cmd)
			if ok {
				_, _ = b.Ledger.Apply(ctx, late)
			}
			return ack, err
		}
	}},
	{"W5", "forgets the first stamp on a repeat", 0, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			if cmd.Op == like.OpLike {
				_, _ = b.Ledger.Apply(ctx, like.Command{Item: cmd.Item, User: cmd.User, Op: like.OpUnlike})
			}
			return b.Ledger.Apply(ctx, cmd)
		}
	}},
	{"W6", "acknowledges with the total as it stands", lagging, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			ack, err := b.Ledger.Apply(ctx, cmd)
			ack.Count = b.count(cmd.Item)
			return ack, err
		}
	}},
	{"W6", "counts the caller once more on every repeat", 0, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			repeat := cmd.Op == like.OpLike && b.state(cmd.User, cmd.Item).Liked
			ack, err := b.Ledger.Apply(ctx, cmd)
			if repeat {
				ack.Count, ack.Version = ack.Count+1, 0
			}
			return ack, err
		}
	}},
	{"W6", "gives the caller's view a version", lagging, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			ack, err := b.Ledger.Apply(ctx, cmd)
			totals, _ := b.Ledger.Totals(context.Background(), []like.Item{cmd.Item})
			ack.Version = totals[0].Version
			return ack, err
		}
	}},
	{"W7", "stamps an import with its own time", 0, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			if cmd.At > 0 && cmd.At <= like.StampOf(b.now().Add(ledger.MaxAhead)) {
				cmd.At = 0
			}
			return b.Ledger.Apply(ctx, cmd)
		}
	}},
	{"W8", "folds a batch backwards", 0, func(b *broken) {
		b.applyMany = func(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
			cmds = slices.Clone(cmds)
			slices.Reverse(cmds)
			acks, err := b.Ledger.ApplyMany(ctx, cmds)
			slices.Reverse(acks)
			return acks, err
		}
	}},
	{"W8", "acknowledges a batch backwards", 0, func(b *broken) {
		b.applyMany = func(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
			acks, err := b.Ledger.ApplyMany(ctx, cmds)
			slices.Reverse(acks)
			return acks, err
		}
	}},
	{"W8", "applies what stands before an invalid command", 0, func(b *broken) {
		b.applyMany = func(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
			acks := make([]ledger.Ack, len(cmds))
			for k, cmd := range cmds {
				var err error
				if acks[k], err = b.Ledger.Apply(ctx, cmd); err != nil {
					return nil, err
				}
			}
			return acks, nil
		}
	}},
	{"W9", "leaves half a command when its caller goes", 0, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			ack, err := b.Ledger.Apply(context.WithoutCancel(ctx), cmd)
			if err == nil && ctx.Err() != nil {
				b.Unlist(cmd.Item, cmd.User)
				return ledger.Ack{}, context.Cause(ctx)
			}
			return ack, err
		}
	}},
	{"W10", "cuts names that are too long", 0, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			cmd.Item.ID = cmd.Item.ID[:min(len(cmd.Item.ID), like.MaxIDBytes)]
			return b.Ledger.Apply(ctx, cmd)
		}
	}},
	{"W11", "stamps with the wall clock", 0, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			if cmd.Op == like.OpLike && cmd.At == 0 {
				cmd.At = like.StampOf(b.now())
			}
			return b.Ledger.Apply(ctx, cmd)
		}
	}},
}, readMutants, feedMutants, keepMutants)

// state is one user's state as the sound ledger has it.
func (b *broken) state(user like.User, item like.Item) like.State {
	states, err := b.Ledger.Liked(context.Background(), user, []like.Item{item})
	if err != nil || len(states) == 0 {
		return like.State{}
	}
	return states[0]
}

// count is one count as the sound ledger has it.
func (b *broken) count(item like.Item) int64 {
	totals, err := b.Ledger.Totals(context.Background(), []like.Item{item})
	if err != nil || len(totals) == 0 {
		return 0
	}
	return totals[0].Count
}

// countsItself lets a mutant keep the counts. apply calls count while the
// ledger's own mutex is free.
func (b *broken) countsItself(apply func(ctx context.Context, cmd like.Command, count func(delta int)) (ledger.Ack, error)) {
	var mu sync.Mutex
	counts := map[like.Item]int64{}
	b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
		return apply(ctx, cmd, func(delta int) {
			mu.Lock()
			defer mu.Unlock()
			counts[cmd.Item] += int64(delta)
		})
	}
	b.totals = func(ctx context.Context, items []like.Item) ([]like.Total, error) {
		totals, err := b.Ledger.Totals(ctx, items)
		mu.Lock()
		defer mu.Unlock()
		for k := range totals {
			totals[k].Count = max(counts[totals[k].Item], 0)
		}
		return totals, err
	}
}

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

var feedMutants = []mutant{
	{"F1", "drops a batch of its feed", 0, func(b *broken) {
		b.feed = func(ctx context.Context) iter.Seq2[[]like.Total, error] {
			return func(yield func([]like.Total, error) bool) {
				n := 0
				for batch, err := range b.Ledger.Feed(ctx) {
					if n++; n%3 == 0 && err == nil {
						continue
					}
					if !yield(batch, err) {
						return
					}
				}
			}
		}
	}},
	{"F1", "says that its feed is live before it is", 0, func(b *broken) {
		b.feed = func(ctx context.Context) iter.Seq2[[]like.Total, error] {
			return func(yield func([]like.Total, error) bool) {
				if !yield(nil, nil) {
					return
				}
				for range 1000 {
					runtime.Gosched()
				}
				first := true
				for batch, err := range b.Ledger.Feed(ctx) {
					if !first && !yield(batch, err) {
						return
					}
					first = false
				}
			}
		}
	}},
	{"F1", "does not feed what an audit corrected", 0, func(b *broken) {
		var corrected sync.Map // like.Total without its count
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			if a, _ := b.Ledger.Audit(ctx, item, false); repair && a.Drift() {
				totals, _ := b.Ledger.Totals(ctx, []like.Item{item})
				corrected.Store(like.Total{Item: item, Version: totals[0].Version + 1}, true)
			}
			return b.Ledger.Audit(ctx, item, repair)
		}
		b.feed = eachTotal(b, func(t *like.Total) {
			if _, ok := corrected.Load(like.Total{Item: t.Item, Version: t.Version}); ok {
				*t = like.Total{Item: t.Item}
			}
		})
	}},
	{"F2", "shows totals before they are committed", 0, func(b *broken) {
		b.feed = eachTotal(b, func(t *like.Total) { t.Count, t.Version = t.Count+1, t.Version+1 })
	}},
	{"F3", "forgets what an overloaded feed missed", 0, func(b *broken) {
		b.feed = func(ctx context.Context) iter.Seq2[[]like.Total, error] {
			return func(yield func([]like.Total, error) bool) {
				for {
					for batch, err := range b.Ledger.Feed(ctx) {
						if errors.Is(err, like.ErrOverloaded) {
							break
						}
						if !yield(batch, err) || err != nil {
							return
						}
					}
				}
			}
		}
	}},
	{"F4", "ends a feed without a word", 0, func(b *broken) {
		b.feed = func(ctx context.Context) iter.Seq2[[]like.Total, error] {
			return func(yield func([]like.Total, error) bool) {
				for batch, err := range b.Ledger.Feed(ctx) {
					if err != nil || !yield(batch, err) {
						return
					}
				}
			}
		}
	}},
	{"F4", "keeps a goroutine for a feed that was left", 0, func(b *broken) {
		b.feed = func(ctx context.Context) iter.Seq2[[]like.Total, error] {
			go func() { <-ctx.Done() }()
			return b.Ledger.Feed(ctx)
		}
	}},
}

// eachTotal is a feed of which every total is changed.
func eachTotal(b *broken, change func(*like.Total)) func(context.Context) iter.Seq2[[]like.Total, error] {
	return func(ctx context.Context) iter.Seq2[[]like.Total, error] {
		return func(yield func([]like.Total, error) bool) {
			for batch, err := range b.Ledger.Feed(ctx) {
				for k := range batch {
					change(&batch[k])
				}
				if !yield(batch, err) {
					return
				}
			}
		}
	}
}

var keepMutants = []mutant{
	{"A1", "takes a lagging total for drift", lagging, func(b *broken) {
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			a, err := b.Ledger.Audit(ctx, item, false)
			a.Total = b.count(item)
			if repair && a.Drift() {
				b.Skew(item, a.Facts-a.Total)
				a.Repaired = true
			}
			return a, err
		}
	}},
	{"A1", "counts facts and total at two moments", 0, func(b *broken) {
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			a, err := b.Ledger.Audit(ctx, item, repair)
			runtime.Gosched()
			a.Total = b.count(item)
			return a, err
		}
	}},
	{"A2", "repairs without being asked", 0, func(b *broken) {
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			a, err := b.Ledger.Audit(ctx, item, true)
			a.Repaired = a.Repaired && repair
			return a, err
		}
	}},
	{"A2", "repairs a total to what it was meant to be before", 0, func(b *broken) {
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			a, err := b.Ledger.Audit(ctx, item, repair)
			if a.Repaired {
				b.Skew(item, -1)
			}
			return a, err
		}
	}},
	{"A2", "does not see list entries without a fact", 0, func(b *broken) {
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			a, err := b.Ledger.Audit(ctx, item, false)
			if a.Phantom > 0 {
				a.Phantom = 0
				return a, err
			}
			return b.Ledger.Audit(ctx, item, repair)
		}
	}},
	{"A3", "audits only what somebody likes", 0, auditing(func(a ledger.Audit) int { return int(min(a.Facts, 1)) })},
	{"A3", "audits an item twice", 0, auditing(func(a ledger.Audit) int { return 1 + int(a.Facts/4) })},
	{"A4", "erases without counting", 0, func(b *broken) {
		b.eraseUser = func(ctx context.Context, user like.User) (int64, error) {
			page, _ := b.Ledger.LikedBy(ctx, user, like.Fact{}, ledger.MaxPage)
			for _, f := range page.Facts {
				b.Skew(f.Item, 1)
			}
			return b.Ledger.EraseUser(ctx, user)
		}
	}},
	{"A5", "starts versions again for a removed item", 0, func(b *broken) {
		base := map[like.Item]uint64{}
		b.removeItem = func(ctx context.Context, item like.Item) (int64, error) {
			n, err := b.Ledger.RemoveItem(ctx, item)
			totals, _ := b.Ledger.Totals(ctx, []like.Item{item})
			base[item] = totals[0].Version
			return n, err
		}
		b.totals = func(ctx context.Context, items []like.Item) ([]like.Total, error) {
			totals, err := b.Ledger.Totals(ctx, items)
			for k := range totals {
				totals[k].Version -= base[totals[k].Item]
			}
			return totals, err
		}
	}},
	{"A6", "exports a fact twice", 0, func(b *broken) {
		b.export = func(ctx context.Context) iter.Seq2[like.Fact, error] {
			return func(yield func(like.Fact, error) bool) {
				for f, err := range b.Ledger.Export(ctx) {
					if !yield(f, err) || f.User == "u17" && !yield(f, err) {
						return
					}
				}
			}
		}
	}},
	{"A7", "claims a backup that it did not write", 0, func(b *broken) {
		b.backup = func(context.Context, string) error { return nil }
	}},
}

// auditing yields each audit as often as times says.
func auditing(times func(ledger.Audit) int) func(*broken) {
	return func(b *broken) {
		b.auditAll = func(ctx context.Context, repair bool) iter.Seq2[ledger.Audit, error] {
			return func(yield func(ledger.Audit, error) bool) {
				for a, err := range b.Ledger.AuditAll(ctx, repair) {
					for range times(a) {
						if !yield(a, err) {
							return
						}
					}
				}
			}
		}
	}
}

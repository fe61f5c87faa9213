package conformance

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
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

// mutants are the broken ledgers: writing and closing here, the others in the lists
// that are appended.
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
	{"W5", "acknowledges with the state when all is done", 0, func(b *broken) {
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			ack, err := b.Ledger.Apply(ctx, cmd)
			runtime.Gosched()
			if now, _ := b.Ledger.Liked(ctx, cmd.User, []like.Item{cmd.Item}); len(now) > 0 {
				ack.State = now[0]
			}
			return ack, err
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
	{"W8", "acknowledges a batch with the states behind it", 0, func(b *broken) {
		b.applyMany = func(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
			acks, err := b.Ledger.ApplyMany(ctx, cmds)
			for k := range acks {
				if now, _ := b.Ledger.Liked(ctx, cmds[k].User, []like.Item{cmds[k].Item}); len(now) > 0 {
					acks[k].State = now[0]
				}
			}
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
}, readMutants, feedMutants, keepMutants, freezeMutants)

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

package metamorphic

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

// mutant is a ledger that is wrong in one way.
type mutant struct {
	*memory.Ledger
	many   func(*memory.Ledger, context.Context, []like.Command) ([]ledger.Ack, error)
	likers func(*memory.Ledger, context.Context, like.Item, like.Fact, int) (ledger.Page, error)
}

func (m mutant) Apply(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
	acks, err := m.ApplyMany(ctx, []like.Command{cmd})
	if err != nil {
		return ledger.Ack{}, err
	}
	return acks[0], nil
}

func (m mutant) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	if m.many != nil {
		return m.many(m.Ledger, ctx, cmds)
	}
	return m.Ledger.ApplyMany(ctx, cmds)
}

func (m mutant) Likers(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
	if m.likers != nil {
		return m.likers(m.Ledger, ctx, item, after, n)
	}
	return m.Ledger.Likers(ctx, item, after, n)
}

// TestComparisonNoticesMutants checks that each way to be wrong is noticed in a few
// sequences, and none where nothing is wrong.
func TestComparisonNoticesMutants(t *testing.T) {
	want := expect(t, sequences(seedOf(t), 80)) // in 20 of them one mutant in a hundred hides
	for name, m := range map[string]mutant{
		"folds the last command of a pair in a batch only": {many: func(l *memory.Ledger, ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
			for k, cmd := range cmds {
				for _, later := range cmds[k+1:] {
					if later.User == cmd.User && later.Item == cmd.Item {
						cmds[k] = later
					}
				}
			}
			return l.ApplyMany(ctx, cmds)
		}},
		"stamps a repeated like anew": {many: func(l *memory.Ledger, ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
			acks := make([]ledger.Ack, len(cmds))
			for k, cmd := range cmds {
				if cmd.Op == like.OpLike {
					_, _ = l.Apply(ctx, like.Command{User: cmd.User, Item: cmd.Item, Op: like.OpUnlike})
				}
				ack, err := l.Apply(ctx, cmd)
				if acks[k] = ack; err != nil {
					return nil, err
				}
			}
			return acks, nil
		}},
		"counts a like of an import twice": {many: func(l *memory.Ledger, ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
			for _, cmd := range cmds {
				if cmd.At != 0 && rand.IntN(4) == 0 {
					l.Skew(cmd.Item, 1)
				}
			}
			return l.ApplyMany(ctx, cmds)
		}},
		"skips who shares a time with the end of a page": {likers: func(l *memory.Ledger, ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
			after.User = ""
			return l.Likers(ctx, item, after, n)
		}},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			m.Ledger = closing(t, memory.New(memory.Config{}))
			b := bench{variant: variant{[]node{{Ledger: m}}, inBatches, 50 * time.Millisecond}}
			found := b.firstDifference(t, want)
			if (found == nil) != (name == "nothing") {
				t.Errorf("found %v", found)
			}
		})
	}
}

package conformance

import (
	"context"
	"iter"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

// broken is a memory ledger of which a mutant replaces some methods: those whose
// field is set. Without an own applyMany, an own apply serves batches too.
type broken struct {
	*memory.Ledger
	now func() time.Time

	apply       func(context.Context, like.Command) (ledger.Ack, error)
	applyMany   func(context.Context, []like.Command) ([]ledger.Ack, error)
	liked       func(context.Context, like.User, []like.Item) ([]like.State, error)
	totals      func(context.Context, []like.Item) ([]like.Total, error)
	likers      func(context.Context, like.Item, like.Fact, int) (ledger.Page, error)
	likedBy     func(context.Context, like.User, like.Fact, int) (ledger.Page, error)
	likersAmong func(context.Context, like.Item, []like.User) ([]like.User, error)
	feed        func(context.Context) iter.Seq2[[]like.Total, error]
	audit       func(context.Context, like.Item, bool) (ledger.Audit, error)
	auditAll    func(context.Context, bool) iter.Seq2[ledger.Audit, error]
	eraseUser   func(context.Context, like.User) (int64, error)
	removeItem  func(context.Context, like.Item) (int64, error)
	export      func(context.Context) iter.Seq2[like.Fact, error]
	backup      func(context.Context, string) error
	freeze      func(context.Context, func(context.Context) error) error
	reopened    func(*memory.Ledger) // called with what the store is open as again
}

func (b *broken) Apply(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
	if b.apply != nil {
		return b.apply(ctx, cmd)
	}
	return b.Ledger.Apply(ctx, cmd)
}

func (b *broken) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	if b.applyMany != nil {
		return b.applyMany(ctx, cmds)
	}
	if b.apply == nil {
		return b.Ledger.ApplyMany(ctx, cmds)
	}
	if err := ledger.CheckCommands(cmds, like.StampOf(b.now())); err != nil {
		return nil, err
	}
	acks := make([]ledger.Ack, len(cmds))
	for k, cmd := range cmds {
		var err error
		if acks[k], err = b.apply(ctx, cmd); err != nil {
			return nil, err
		}
	}
	return acks, nil
}

func (b *broken) Liked(ctx context.Context, user like.User, items []like.Item) ([]like.State, error) {
	if b.liked != nil {
		return b.liked(ctx, user, items)
	}
	return b.Ledger.Liked(ctx, user, items)
}

func (b *broken) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	if b.totals != nil {
		return b.totals(ctx, items)
	}
	return b.Ledger.Totals(ctx, items)
}

func (b *broken) Likers(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
	if b.likers != nil {
		return b.likers(ctx, item, after, n)
	}
	return b.Ledger.Likers(ctx, item, after, n)
}

func (b *broken) LikedBy(ctx context.Context, user like.User, after like.Fact, n int) (ledger.Page, error) {
	if b.likedBy != nil {
		return b.likedBy(ctx, user, after, n)
	}
	return b.Ledger.LikedBy(ctx, user, after, n)
}

func (b *broken) LikersAmong(ctx context.Context, item like.Item, users []like.User) ([]like.User, error) {
	if b.likersAmong != nil {
		return b.likersAmong(ctx, item, users)
	}
	return b.Ledger.LikersAmong(ctx, item, users)
}

func (b *broken) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	if b.feed != nil {
		return b.feed(ctx)
	}
	return b.Ledger.Feed(ctx)
}

func (b *broken) Audit(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
	if b.audit != nil {
		return b.audit(ctx, item, repair)
	}
	return b.Ledger.Audit(ctx, item, repair)
}

func (b *broken) AuditAll(ctx context.Context, repair bool) iter.Seq2[ledger.Audit, error] {
	if b.auditAll != nil {
		return b.auditAll(ctx, repair)
	}
	return b.Ledger.AuditAll(ctx, repair)
}

func (b *broken) EraseUser(ctx context.Context, user like.User) (int64, error) {
	if b.eraseUser != nil {
		return b.eraseUser(ctx, user)
	}
	return b.Ledger.EraseUser(ctx, user)
}

func (b *broken) RemoveItem(ctx context.Context, item like.Item) (int64, error) {
	if b.removeItem != nil {
		return b.removeItem(ctx, item)
	}
	return b.Ledger.RemoveItem(ctx, item)
}

func (b *broken) Export(ctx context.Context) iter.Seq2[like.Fact, error] {
	if b.export != nil {
		return b.export(ctx)
	}
	return b.Ledger.Export(ctx)
}

func (b *broken) Backup(ctx context.Context, dir string) error {
	if b.backup != nil {
		return b.backup(ctx, dir)
	}
	return b.Ledger.Backup(ctx, dir)
}

func (b *broken) Freeze(ctx context.Context, while func(context.Context) error) error {
	if b.freeze != nil {
		return b.freeze(ctx, while)
	}
	return b.Ledger.Freeze(ctx, while)
}

// harness opens memory ledgers broken by mutate, with totals that lag.
func brokenHarness(lag time.Duration, mutate func(*broken)) Harness {
	wrap := func(tb testing.TB, m *memory.Ledger, now func() time.Time) *broken {
		tb.Cleanup(func() { m.Close() })
		b := &broken{Ledger: m, now: now}
		mutate(b)
		return b
	}
	return Harness{
		Open: func(tb testing.TB, now func() time.Time) ledger.Ledger {
			return wrap(tb, memory.New(memory.Config{Now: now, Lag: lag}), now)
		},
		Reopen: func(tb testing.TB, l ledger.Ledger) ledger.Ledger {
			old := l.(*broken)
			next := wrap(tb, old.Ledger.Reopen(), old.now)
			if old.reopened != nil {
				old.reopened(next.Ledger)
			}
			return next
		},
		Injure: func(_ testing.TB, l ledger.Ledger, in Injury) bool {
			m := l.(*broken).Ledger
			switch {
			case in.Unlist:
				m.Unlist(in.Fact.Item, in.Fact.User)
			case in.Phantom:
				m.Phantom(in.Fact)
			default:
				m.Skew(in.Fact.Item, in.Skew)
			}
			return true
		},
		Settle:  lag,
		Backlog: ledger.FeedBacklog + 1,
	}
}

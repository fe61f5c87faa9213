package conformance

import (
	"context"
	"sync/atomic"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

var freezeMutants = []mutant{
	{"S1", "does not stand still", 0, func(b *broken) {
		b.freeze = func(ctx context.Context, while func(context.Context) error) error { return while(ctx) }
	}},
	{"S1", "says that it erased while it stood still", 0, func(b *broken) {
		b.eraseUser = func(ctx context.Context, user like.User) (int64, error) {
			n, _ := b.Ledger.EraseUser(ctx, user)
			return n, nil
		}
	}},
	{"S2", "refuses reads while it stands still", 0, func(b *broken) {
		var frozen atomic.Bool
		b.freeze = func(ctx context.Context, while func(context.Context) error) error {
			frozen.Store(true)
			defer frozen.Store(false)
			return b.Ledger.Freeze(ctx, while)
		}
		b.likers = func(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
			if frozen.Load() {
				return ledger.Page{}, like.ErrUnavailable
			}
			return b.Ledger.Likers(ctx, item, after, n)
		}
	}},
	{"S3", "stands still for ever", 0, func(b *broken) {
		var frozen atomic.Bool
		b.freeze = func(ctx context.Context, while func(context.Context) error) error {
			frozen.Store(true)
			return b.Ledger.Freeze(ctx, while)
		}
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			if frozen.Load() {
				return ledger.Ack{}, like.ErrUnavailable
			}
			return b.Ledger.Apply(ctx, cmd)
		}
	}},
	{"S3", "does not say that the standstill is over", 0, func(b *broken) {
		b.freeze = func(ctx context.Context, while func(context.Context) error) error {
			return b.Ledger.Freeze(ctx, func(context.Context) error { return while(context.Background()) })
		}
	}},
	{"S4", "lets two stand still at once", 0, func(b *broken) {
		b.freeze = func(ctx context.Context, while func(context.Context) error) error {
			if err := b.Ledger.Freeze(ctx, while); err != nil {
				return while(ctx)
			}
			return nil
		}
	}},
}

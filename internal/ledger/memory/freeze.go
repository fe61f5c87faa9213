package memory

import (
	"context"
	"fmt"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

var errFrozen = fmt.Errorf("%w: memory ledger: its facts are being moved", like.ErrUnavailable)

var _ ledger.Freezer = (*Ledger)(nil)

// Freeze implements [ledger.Freezer].
func (l *Ledger) Freeze(ctx context.Context, while func(context.Context) error) error {
	if err := l.lockToWrite(ctx); err != nil {
		return err
	}
	ctx, l.thaw = context.WithCancelCause(ctx)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.thaw(nil)
		l.thaw = nil
	}()
	return while(ctx)
}

// lockToWrite is lock for calls that change facts.
func (l *Ledger) lockToWrite(ctx context.Context) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	if l.thaw != nil {
		l.mu.Unlock()
		return errFrozen
	}
	return nil
}

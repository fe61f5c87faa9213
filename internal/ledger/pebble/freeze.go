package pebble

import (
	"context"
	"fmt"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

var errFrozen = fmt.Errorf("%w: the store is being moved to another ledger", like.ErrUnavailable)

var _ ledger.Freezer = (*Ledger)(nil)

// Freeze implements [ledger.Freezer]. From the moment the flag is set the writer
// refuses every request that it looks at. A request that changes nothing then
// passes through the whole queue: once it is answered, all that the writer took
// before the flag is durable.
func (l *Ledger) Freeze(ctx context.Context, while func(context.Context) error) error {
	end, err := l.calls.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if !l.frozen.CompareAndSwap(false, true) {
		return errFrozen
	}
	defer l.frozen.Store(false)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.calls.closing, func() { cancel(context.Cause(l.calls.closing)) })()
	if _, err := l.submitPatiently(ctx, func() *request { return newRequest(nil) }); err != nil {
		return err
	}
	return while(ctx)
}

// refused reports why a request may not be carried out while the ledger stands
// still. One that changes nothing may.
func (l *Ledger) refused(r *request) error {
	if (len(r.cmds) > 0 || r.correct != nil) && l.frozen.Load() {
		return errFrozen
	}
	return nil
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"likewise/internal/like"
)

// failure gives an error of the driver one of the kinds. A context that is done
// explains everything.
func failure(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, like.ErrInvalid), errors.Is(err, errFrozen):
		return fmt.Errorf("postgres: %s: %w", what, err)
	case damaged(err):
		return fmt.Errorf("postgres: %s: %w: %w", what, like.ErrCorrupt, err)
	}
	return fmt.Errorf("postgres: %s: %w: %w", what, like.ErrUnavailable, err)
}

// taken reports whether another transaction added the same fact first.
func taken(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "23505" // unique_violation
}

// damaged reports whether the database says that its data or its tables are broken,
// which no retry mends. The codes are those of appendix A of the manual; 42501 is a
// missing privilege, which its owner can grant.
func damaged(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(refused.Code, "XX") || strings.HasPrefix(refused.Code, "42") && refused.Code != "42501")
}

// failure is that of a call, which Close may have cut off.
func (l *Ledger) failure(ctx context.Context, what string, err error) error {
	if err != nil && ctx.Err() == nil && l.closed.Load() {
		return fmt.Errorf("postgres: %s: %w", what, like.ErrClosed)
	}
	return failure(ctx, what, err)
}

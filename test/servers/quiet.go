package servers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Quiet waits until nobody else is connected to a database of PostgreSQL. Once its
// clients were killed, what they had begun has then been committed or rolled back.
func Quiet(tb testing.TB, url string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), within)
	defer cancel()
	check(tb, poll(ctx, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		var others int
		err = conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&others)
		if err == nil && others > 0 {
			err = fmt.Errorf("%d clients of the database are left", others)
		}
		return errors.Join(err, conn.Close(ctx))
	}))
}

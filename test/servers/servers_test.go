package servers_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"likewise/test/harness"
	"likewise/test/servers"
)

// No goroutine watches the servers, not even the shared one.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// number returns the number that a statement gives.
func number(t *testing.T, conn *pgx.Conn, sql string) int {
	t.Helper()
	var n int
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// answers reports whether a connection answers within a while.
func answers(t *testing.T, conn *pgx.Conn, within time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return conn.Ping(ctx) == nil
}

func eventually(t *testing.T, what string, try func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := harness.Poll(ctx, 10*time.Millisecond, func() (bool, error) { return try(), nil })
	if err != nil {
		t.Fatalf("not within 30 s: %s", what)
	}
}

func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, servers.Database(t))
			execute(t, conn, "CREATE TABLE likes (id int)")
			if n := number(t, conn, "SELECT count(*) FROM pg_tables WHERE tablename = 'likes'"); n != 1 {
				t.Errorf("%d tables, want 1", n)
			}
		})
	}
}

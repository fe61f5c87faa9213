package servers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/test/harness"
	"likewise/test/servers"
)

// No goroutine watches the servers, not even the shared one.
func TestMain(m *testing.M) { harness.MainWithoutLeaks(m) }

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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := harness.Poll(ctx, 10*time.Millisecond, func() (bool, error) { return try(), nil })
	if err != nil {
		t.Fatalf("not within a minute: %s", what)
	}
}

func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, servers.Database(t))
			execute(t, conn, "CREATE TABLE likes (id int)")
		})
	}
}

// A database may have been that of an earlier test, of which nothing is left.
func TestDatabasesAreNew(t *testing.T) {
	t.Parallel()
	var used []string
	parent := t
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			url := servers.Database(t)
			for _, old := range used {
				if _, err := pgx.Connect(t.Context(), old); err == nil {
					t.Error("a database of an earlier test is there under its name")
				}
			}
			used = append(used, url)
			conn := connect(parent, url) // open after the end of this test
			const own = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname !~ '^pg_|^inf'"
			if n := number(t, conn, own); n != 0 {
				t.Errorf("it has %d tables", n)
			}
			if n := number(t, conn, "SELECT setting::int FROM pg_settings WHERE name = 'work_mem'"); n != 4<<10 {
				t.Errorf("work_mem is %d kB", n)
			}
			execute(t, conn, "CREATE SCHEMA likewise; CREATE TABLE likewise.likes (id int); CREATE TABLE other (id int)")
			execute(t, conn, "ALTER DATABASE "+conn.Config().Database+" SET work_mem = '5MB'")
			execute(t, conn, "BEGIN; INSERT INTO other VALUES (1)") // left open
		})
	}
}

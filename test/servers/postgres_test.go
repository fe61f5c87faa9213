package servers_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/test/servers"
)

func TestPostgresSettings(t *testing.T) {
	t.Parallel()
	conn := connect(t, servers.Database(t))
	for name, want := range map[string]string{
		"fsync": "on", "server_encoding": "UTF8", "lc_collate": "C", "max_connections": "200", "wal_level": "replica",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "SHOW "+name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
}

func TestPostgresFaults(t *testing.T) {
	t.Parallel()
	pg := servers.Postgres(t, servers.With("application_name", "it's set"))
	t.Run("ends", func(t *testing.T) { comesBackWithItsData(t, pg) })
	t.Run("freezes", func(t *testing.T) { freezes(t, pg) })
	pg.Freeze(t) // its end comes nevertheless
}

func comesBackWithItsData(t *testing.T, pg *servers.PostgresServer) {
	url := pg.Database(t)
	conn := connect(t, url)
	execute(t, conn, "CREATE TABLE starts (n int)")
	for _, tt := range []struct {
		name string
		end  func(testing.TB)
	}{{"stopped", pg.StopImmediate}, {"killed", pg.Kill9}} {
		rows := number(t, conn, "SELECT count(*) FROM starts")
		execute(t, conn, "INSERT INTO starts VALUES (1)")
		tt.end(t)
		if answers(t, conn, 10*time.Second) {
			t.Fatalf("%s: it answers", tt.name)
		}
		pg.Start(t)
		conn = connect(t, url)
		if n := number(t, conn, "SELECT count(*) FROM starts"); n != rows+1 {
			t.Errorf("%s: %d rows came back, want %d", tt.name, n, rows+1)
		}
	}
	pg.Set(t, "work_mem", "5MB")
	eventually(t, "the setting is changed", func() bool {
		return number(t, conn, "SELECT setting::int FROM pg_settings WHERE name = 'work_mem'") == 5<<10
	})
}

func freezes(t *testing.T, pg *servers.PostgresServer) {
	slow, idle := connect(t, pg.URL()), connect(t, pg.URL())
	pg.Freeze(t)
	if answers(t, slow, 100*time.Millisecond) {
		t.Error("it answers while frozen")
	}
	pg.Thaw(t)
	if !answers(t, idle, 10*time.Second) {
		t.Error("a connection did not survive the frost")
	}
	if n := pg.Sever(t); n < 1 || answers(t, idle, 10*time.Second) {
		t.Errorf("%d connections were cut, and one still answers", n)
	}
	if !answers(t, connect(t, pg.URL()), 10*time.Second) {
		t.Error("no new connection after the cut")
	}
}

func TestPostgresReplicaTakesOver(t *testing.T) {
	t.Parallel()
	pg := servers.Postgres(t, servers.WithReplicas)
	primary := connect(t, pg.URL())
	execute(t, primary, "CREATE TABLE likes (id int)")
	execute(t, primary, "INSERT INTO likes VALUES (1)")
	pg.Set(t, "synchronous_standby_names", "*")
	replica := connect(t, pg.Replica().URL())
	eventually(t, "the replica has the row", func() bool {
		if number(t, replica, "SELECT count(*) FROM pg_tables WHERE tablename = 'likes'") == 0 {
			return false
		}
		return number(t, replica, "SELECT count(*) FROM likes") == 1
	})
	pg.Kill9(t)
	pg.Replica().Promote(t)
	execute(t, connect(t, pg.Replica().URL()), "INSERT INTO likes VALUES (2)")
}

func TestPgBouncerPoolsTransactions(t *testing.T) {
	t.Parallel()
	b := servers.PgBouncer(t, servers.Database(t), servers.With("default_pool_size", "1"))
	var backends [2]int
	for i := range backends { // both connections stay open, and share the only one behind
		tx, err := connect(t, b.URL()).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&backends[i]); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if backends[0] != backends[1] {
		t.Errorf("two transactions ran in processes %d and %d", backends[0], backends[1])
	}
}

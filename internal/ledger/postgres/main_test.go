package postgres

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/test/harness"
	"likewise/test/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heavyTest leaves a test to runs at full size.
func heavyTest(tb testing.TB) {
	tb.Helper()
	if !harness.Heavy() {
		tb.Skip("set " + harness.HeavyEnv + "=1 to run it")
	}
}

// sized chooses between the size of a drill in every run and its full one.
func sized(usual, full int) int {
	if harness.Heavy() {
		return full
	}
	return usual
}

// testConfig drains often, so that tests need not wait.
func testConfig(urls ...string) Config {
	cfg := DefaultConfig()
	cfg.URLs = urls
	cfg.QueueAge = time.Minute // a loaded machine is not an overloaded ledger
	cfg.BatchWait = 100 * time.Microsecond
	cfg.DrainInterval = 10 * time.Millisecond
	cfg.OnFatal = func(err error) { panic(err) }
	return cfg
}

// hasty returns settings for tests that end nodes but never the server: commits need
// not wait for its disk, except at full size.
func hasty(urls ...string) Config {
	cfg := testConfig()
	cfg.AcceptUnsafe = !harness.Heavy()
	for _, url := range urls {
		if cfg.AcceptUnsafe {
			url += "&options=-c%20synchronous_commit%3Doff"
		}
		cfg.URLs = append(cfg.URLs, url)
	}
	return cfg
}

func openTest(tb testing.TB, cfg Config) *Ledger {
	tb.Helper()
	l, err := Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() { l.Close() })
	return l
}

// crash ends a ledger as the end of its process does: all at once, with calls and
// transactions under way.
func crash(l *Ledger) {
	l.closed.Store(true)
	l.broadcast.Close()
	for _, s := range l.shards {
		s.stop()
	}
	l.Close()
}

// databases lends databases to the subtests of owner. They keep their tables, because
// to make them takes longer than most tests.
type databases struct {
	owner testing.TB

	mu   sync.Mutex
	free []string
}

func (d *databases) take(tb testing.TB) string {
	tb.Helper()
	url := d.pop()
	if url == "" {
		url = servers.Database(d.owner)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		rests(tb, url, "true")
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			_, err = conn.Exec(ctx, `DELETE FROM likewise.likes; DELETE FROM likewise.totals; DELETE FROM likewise.outbox;
				DELETE FROM likewise.unliked; DELETE FROM likewise.drains; DELETE FROM likewise.layout`)
			conn.Close(ctx)
		}
		if err != nil {
			tb.Errorf("empty a database: %v", err)
			return
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.free = append(d.free, url)
	})
	return url
}

func (d *databases) pop() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.free) == 0 {
		return ""
	}
	url := d.free[len(d.free)-1]
	d.free = d.free[:len(d.free)-1]
	return url
}

// rests waits until a database serves nobody else who is as the condition says. What
// a closed ledger left under way may be committed, or not, a little later.
func rests(tb testing.TB, url, others string) {
	tb.Helper()
	conn := connect(tb, url)
	defer conn.Close(context.Background())
	eventually(tb, "the database rests", func() bool {
		var n int
		err := conn.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND `+others, pgx.QueryExecModeExec).Scan(&n)
		if err != nil {
			tb.Fatal(err)
		}
		return n == 0
	})
}

func connect(tb testing.TB, url string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// execute runs a statement in a shard's database.
func execute(tb testing.TB, s *shard, sql string, args ...any) {
	tb.Helper()
	if _, err := s.write.Exec(context.Background(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// eventually polls until done reports true, for half a minute.
func eventually(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not within 30 s: %s", what)
		}
	}
}

func post(id string) like.Item { return like.Item{Collection: "posts", ID: id} }
func postN(n int) like.Item    { return post(strconv.Itoa(n)) }
func userN(n int) like.User    { return like.User("u" + strconv.Itoa(n)) }

// apply sends one command that has to succeed.
func apply(tb testing.TB, l ledger.Writer, cmd like.Command) ledger.Ack {
	tb.Helper()
	ack, err := l.Apply(tb.Context(), cmd)
	if err != nil {
		tb.Fatalf("%v of %v by %q: %v", cmd.Op, cmd.Item, cmd.User, err)
	}
	return ack
}

// totalIs waits until a total is what it should be.
func totalIs(tb testing.TB, l ledger.Reader, item like.Item, want int64) {
	tb.Helper()
	eventually(tb, fmt.Sprintf("the total of %v is %d", item, want), func() bool {
		totals, err := l.Totals(tb.Context(), []like.Item{item})
		return err == nil && totals[0].Count == want
	})
}

package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/ledger/conformance"
	"likewise/test/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig drains often, so that tests need not wait.
func testConfig(urls ...string) Config {
	cfg := DefaultConfig()
	cfg.URLs = urls
	cfg.QueueAge = time.Minute // a loaded machine is not an overloaded ledger
	cfg.BatchWait = 100 * time.Microsecond
	cfg.DrainInterval = 10 * time.Millisecond
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

// harness opens ledgers of several databases.
func harness(name string, shards int) conformance.Harness {
	return conformance.Harness{
		Name: name,
		Open: func(tb testing.TB, now func() time.Time) ledger.Ledger {
			var urls []string
			for range shards {
				urls = append(urls, servers.Database(tb))
			}
			cfg := testConfig(urls...)
			cfg.Now = now
			return openTest(tb, cfg)
		},
		Reopen: func(tb testing.TB, l ledger.Ledger) ledger.Ledger {
			old := l.(*Ledger)
			crash(old)
			return openTest(tb, old.cfg)
		},
		Injure:  injure,
		Settle:  20 * time.Millisecond,
		Backlog: ledger.FeedBacklog + 1,
	}
}

// injure falsifies a total. Lists are indexes, which only the database could falsify.
func injure(tb testing.TB, l ledger.Ledger, in conformance.Injury) bool {
	if in.Skew == 0 {
		return false
	}
	s := l.(*Ledger).shard(in.Fact.Item)
	execute(tb, s.cfg.URLs[0], s, `INSERT INTO likewise.totals AS t VALUES ($1, $2, $3, 0)
		ON CONFLICT (collection, item_id) DO UPDATE SET count = t.count + excluded.count`, in.Fact.Item.Collection, in.Fact.Item.ID, in.Skew)
	return true
}

func execute(tb testing.TB, _ string, s *shard, sql string, args ...any) {
	tb.Helper()
	if _, err := s.write.Exec(context.Background(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
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

func TestConformance(t *testing.T) { conformance.Run(t, harness("postgres", 1)) }

func TestModel(t *testing.T) { conformance.Model(t, harness("postgres", 1), 0) }

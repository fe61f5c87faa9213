package postgres

import (
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"likewise/internal/ledger/conformance"
	"likewise/test/servers"
)

// bounced returns settings for ledgers behind a PgBouncer that pools transactions.
func bounced(t *testing.T) func(testing.TB) Config {
	pg := servers.Postgres(t)
	bouncer, err := url.Parse(servers.PgBouncer(t, pg.URL()).URL())
	if err != nil {
		t.Fatal(err)
	}
	return func(tb testing.TB) Config {
		through, err := url.Parse(pg.Database(tb))
		if err != nil {
			tb.Fatal(err)
		}
		through.Host = bouncer.Host
		cfg := testConfig(through.String())
		cfg.PgBouncer = true
		return cfg
	}
}

func TestConformanceBehindPgBouncer(t *testing.T) {
	heavyTest(t)
	conformance.Run(t, harnessOf("postgres, PgBouncer", 1, bounced(t)))
}

// Nodes that wait for another one's migrations leave it the connections to do them.
func TestMigrationsBehindASmallPool(t *testing.T) {
	t.Parallel()
	b := servers.PgBouncer(t, servers.Database(t), servers.With("default_pool_size", "2"))
	cfg := testConfig(b.URL())
	cfg.PgBouncer = true
	var nodes sync.WaitGroup
	for n := range 6 {
		nodes.Go(func() {
			l, err := Open(t.Context(), cfg)
			if err != nil {
				t.Errorf("node %d: %v", n, err)
				return
			}
			l.Close()
		})
	}
	nodes.Wait()
}

func TestModelBehindPgBouncer(t *testing.T) {
	heavyTest(t)
	conformance.Model(t, harnessOf("", 2, bounced(t)), 0)
}

// mirrored returns settings for ledgers that read from a replica.
func mirrored(t *testing.T) func(testing.TB) Config {
	pg := servers.Postgres(t, servers.WithReplicas)
	replica, err := url.Parse(pg.Replica().URL())
	if err != nil {
		t.Fatal(err)
	}
	return func(tb testing.TB) Config {
		primary := pg.Database(tb)
		copied, err := url.Parse(primary)
		if err != nil {
			tb.Fatal(err)
		}
		copied.Host = replica.Host
		openTest(tb, testConfig(primary)).Close() // so that the replica has its tables
		eventually(tb, "the replica has the tables", func() bool {
			conn, err := pgx.Connect(tb.Context(), copied.String())
			if err != nil {
				return false
			}
			defer conn.Close(tb.Context())
			var n int
			return conn.QueryRow(tb.Context(), "SELECT count(*) FROM likewise.layout").Scan(&n) == nil && n == 1
		})
		cfg := testConfig(primary)
		cfg.Replicas = []string{copied.String()}
		return cfg
	}
}

func TestConformanceWithReplica(t *testing.T) {
	heavyTest(t)
	conformance.Run(t, harnessOf("postgres, replica", 1, mirrored(t)))
}

func TestModelWithReplica(t *testing.T) {
	heavyTest(t)
	conformance.Model(t, harnessOf("", 2, mirrored(t)), 0)
}

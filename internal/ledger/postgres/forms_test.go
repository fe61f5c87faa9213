package postgres

import (
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/internal/ledger"
	"likewise/internal/ledger/conformance"
	"likewise/internal/like"
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

// A replica answers reads as long as it keeps up, and sees every acknowledged command;
// one that does not replay is left alone.
func TestReplicaAnswersReads(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	cfg := mirrored(t)(t)
	both := openNodes(t, cfg, 2)
	replica := connect(t, cfg.Replicas[0])
	scans := func() (n int64) {
		t.Helper()
		err := replica.QueryRow(t.Context(), `SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE relname = 'likes'`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	reads := func() (replica, missed uint64) {
		for _, l := range both.all {
			stats := l.Stats()
			replica, missed = replica+stats.ReplicaReads, missed+stats.ReplicaMisses
		}
		return replica, missed
	}
	before := scans()
	const rounds = 300
	for n := range rounds {
		cmd := like.Command{Item: postN(n % 9), User: "u", Op: like.OpLike}
		if n/9%2 == 1 {
			cmd.Op = like.OpUnlike
		}
		ack := apply(t, both, cmd)
		states, err := both.Liked(t.Context(), "u", []like.Item{cmd.Item})
		if err != nil || states[0] != ack.State {
			t.Errorf("round %d reads %+v, %v behind %+v", n, states, err, ack.State)
		}
	}
	// On a busy machine it may have been behind most of the time. At rest it is not.
	eventually(t, "the replica answers and counts reads", func() bool {
		if _, err := both.Liked(t.Context(), "u", []like.Item{postN(0)}); err != nil {
			t.Error(err)
		}
		return scans()-before > rounds/2
	})
	there, missed := reads()
	if there <= rounds/2 {
		t.Errorf("%d reads of the replica are counted", there)
	}

	stop := connect(t, cfg.Replicas[0])
	if _, err := stop.Exec(t.Context(), "SELECT pg_wal_replay_pause()"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for n := range 50 {
		apply(t, both, like.Command{Item: postN(n), User: "v", Op: like.OpLike})
		page, err := both.LikedBy(t.Context(), "v", like.Fact{}, ledger.MaxPage)
		if err != nil || len(page.Facts) != n+1 {
			t.Fatalf("beside a replica that stands still: %d facts, %v, want %d", len(page.Facts), err, n+1)
		}
	}
	t.Logf("50 likes and reads beside a replica that stands still took %v", time.Since(begin).Round(time.Millisecond))
	if still, now := reads(); still+now != there+missed+50 || now-missed < 45 { // it stops a little later
		t.Errorf("%d reads of a replica that stands still are counted, and %d missed ones", still-there, now-missed)
	}
}

// A replica that keeps up and reads slowly, as one with a bad disk does, makes nobody
// wait for it.
func TestSlowReplica(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	cfg := mirrored(t)(t)
	l := openTest(t, cfg)
	replica, primary := connect(t, cfg.Replicas[0]), l.shards[0]
	for n := range 20 {
		apply(t, l, like.Command{Item: postN(n), User: "u", Op: like.OpLike})
	}
	execute(t, primary, "ALTER TABLE likewise.likes RENAME TO kept")
	execute(t, primary, `CREATE VIEW likewise.likes AS SELECT kept.* FROM likewise.kept,
		(SELECT CASE WHEN pg_is_in_recovery() THEN pg_sleep(20) END) AS disk`)
	asked := 0
	eventually(t, "the replica was asked", func() bool {
		for range 20 {
			begin := time.Now()
			page, err := l.LikedBy(t.Context(), "u", like.Fact{}, ledger.MaxPage)
			if took := time.Since(begin); err != nil || len(page.Facts) != 20 || took > 10*time.Second {
				t.Fatalf("%d facts, %v after %v", len(page.Facts), err, took)
			}
		}
		err := replica.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'PgSleep'`).Scan(&asked)
		return err == nil && asked > 0
	})
}

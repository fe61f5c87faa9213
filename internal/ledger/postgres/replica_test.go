package postgres

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/test/servers"
)

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

// A replica takes over, and the old primary, which had gone on alone, is left as a replica
// whose log is longer and has not what is acknowledged now.
func TestReplicaOfAnotherTimeline(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	old := servers.Postgres(t, servers.WithReplicas)
	url := old.Database(t)
	openTest(t, testConfig(url)).Close()
	caughtUp(t, old)
	primary := old.Replica()
	primary.Promote(t)
	alone := openTest(t, testConfig(url))
	for n := range 300 {
		apply(t, alone, like.Command{Item: postN(n), User: "alone", Op: like.OpLike})
	}
	alone.Close()
	old.StandAlone(t)

	cfg := testConfig(onServer(t, url, primary))
	cfg.Replicas = []string{url}
	l := openTest(t, cfg)
	eventually(t, "the old primary is taken for a replica", func() bool { return len(l.shards[0].replicas.list()) == 1 })
	for n := range 20 {
		apply(t, l, like.Command{Item: postN(n), User: "u", Op: like.OpLike})
		page, err := l.LikedBy(t.Context(), "u", like.Fact{}, ledger.MaxPage)
		if err != nil || len(page.Facts) != n+1 {
			t.Errorf("%d facts, %v behind %d likes", len(page.Facts), err, n+1)
		}
	}
}

// A replica that is away when a node starts is used once it is there.
func TestReplicaComesLater(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	primary := servers.Postgres(t, servers.WithReplicas)
	url := primary.Database(t)
	primary.Replica().Kill9(t)
	cfg := testConfig(url)
	cfg.Replicas = []string{onServer(t, url, primary.Replica())}
	l := openTest(t, cfg)
	apply(t, l, like.Command{Item: post("1"), User: "u", Op: like.OpLike})
	page, err := l.LikedBy(t.Context(), "u", like.Fact{}, ledger.MaxPage)
	if err != nil || len(page.Facts) != 1 {
		t.Fatalf("%d facts, %v without the replica", len(page.Facts), err)
	}
	primary.Replica().Start(t)
	eventually(t, "the replica is used", func() bool { return len(l.shards[0].replicas.list()) == 1 })
}

// caughtUp waits until the replica of a server has replayed everything.
func caughtUp(tb testing.TB, primary *servers.PostgresServer) {
	tb.Helper()
	var end int64
	const at = "SELECT (%s - '0/0')::bigint"
	if err := connect(tb, primary.URL()).QueryRow(tb.Context(), fmt.Sprintf(at, "pg_current_wal_flush_lsn()")).Scan(&end); err != nil {
		tb.Fatal(err)
	}
	replica := connect(tb, primary.Replica().URL())
	eventually(tb, "the replica has replayed everything", func() bool {
		var replayed int64
		err := replica.QueryRow(tb.Context(), fmt.Sprintf(at, "pg_last_wal_replay_lsn()")).Scan(&replayed)
		return err == nil && replayed >= end
	})
}

// onServer is the URL of the same database of another server.
func onServer(tb testing.TB, database string, server interface{ URL() string }) string {
	tb.Helper()
	a, err := url.Parse(database)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := url.Parse(server.URL())
	if err != nil {
		tb.Fatal(err)
	}
	a.Host = b.Host
	return a.String()
}

// Behind a PgBouncer the connections of a node say nothing of the server: it is another
// one after a restart, and may have much to replay again.
func TestReplicaBehindPgBouncer(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	primary := servers.Postgres(t, servers.WithReplicas)
	replica, url := primary.Replica(), primary.Database(t)
	openTest(t, testConfig(url)).Close()
	caughtUp(t, primary)
	cfg := testConfig(url)
	cfg.PgBouncer = true
	cfg.Replicas = []string{onServer(t, url, servers.PgBouncer(t, replica.URL()))}
	l := openTest(t, cfg)
	all := func() {
		t.Helper()
		page, err := l.LikedBy(t.Context(), "u", like.Fact{}, ledger.MaxPage)
		if err != nil || len(page.Facts) != 20 {
			t.Fatalf("%d facts, %v behind 20 likes", len(page.Facts), err)
		}
	}
	for n := range 20 {
		if n == 10 { // what a restart begins with
			execute(t, l.shards[0], "CHECKPOINT")
			caughtUp(t, primary)
			if _, err := connect(t, replica.URL()).Exec(t.Context(), "CHECKPOINT"); err != nil {
				t.Fatal(err)
			}
		}
		apply(t, l, like.Command{Item: postN(n), User: "u", Op: like.OpLike})
	}
	totalIs(t, l, postN(19), 1)
	before := l.Stats().ReplicaReads
	eventually(t, "the replica answers", func() bool { all(); return l.Stats().ReplicaReads > before+50 })
	replica.Set(t, "recovery_min_apply_delay", "1h")
	replica.Kill9(t)
	replica.Start(t)
	for range 200 {
		all()
	}
}

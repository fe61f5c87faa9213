package postgres

import (
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	"likewise/internal/like"
	"likewise/test/servers"
)

// The server is cut off, halts, stops without a checkpoint and is killed, under load
// from two nodes: what was acknowledged is there, and totals are right.
func TestServerFails(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	pg := servers.Postgres(t)
	both := openNodes(t, testConfig(pg.Database(t)), 2)
	l := startLoad(t, testSeed(t), 12, both.all...)
	for range 10 {
		for _, fault := range []func(){
			func() {
				if pg.Sever(t) == 0 {
					t.Error("no connection was cut")
				}
			},
			func() {
				pg.Freeze(t)
				sleep(t.Context(), 2*time.Second)
				pg.Thaw(t)
			},
			func() {
				pg.StopImmediate(t)
				pg.Start(t)
			},
			func() {
				pg.Kill9(t)
				pg.Start(t)
			},
		} {
			l.goesOn(100)
			fault()
			l.goesOn(100)
		}
	}
	l.finish()
	for k, n := range both.all {
		if n.Stats().Retries == 0 {
			t.Errorf("node %d did not notice", k)
		}
		if err := n.Ready(t.Context()); err != nil {
			t.Errorf("node %d: %v", k, err)
		}
	}
}

// either is the URL of whichever of two servers takes writes.
func either(tb testing.TB, primary, replica string) string {
	tb.Helper()
	a, err := url.Parse(primary)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := url.Parse(replica)
	if err != nil {
		tb.Fatal(err)
	}
	a.Host += "," + b.Host
	return a.String() + "&target_session_attrs=read-write&connect_timeout=1"
}

// replicated starts a server whose commits wait for its replica.
func replicated(tb testing.TB) (primary, replica *servers.PostgresServer, url string) {
	tb.Helper()
	primary = servers.Postgres(tb, servers.WithReplicas)
	replica = primary.Replica()
	database := primary.Database(tb)
	primary.Set(tb, "synchronous_standby_names", "*")
	eventually(tb, "the replica is waited for", func() bool {
		var state string
		err := connect(tb, primary.URL()).QueryRow(tb.Context(), "SELECT sync_state FROM pg_stat_replication").Scan(&state)
		return err == nil && state == "sync"
	})
	return primary, replica, either(tb, database, replica.URL())
}

// The primary dies under load and its synchronous replica takes over.
func TestReplicaTakesOver(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	primary, replica, url := replicated(t)
	cfg := testConfig(url)
	both := openNodes(t, cfg, 2)
	l := startLoad(t, testSeed(t), 12, both.all...)
	l.goesOn(500)
	primary.Kill9(t)
	begin := time.Now()
	replica.Promote(t)
	l.goesOn(500)
	t.Logf("500 commands more within %v", time.Since(begin).Round(time.Millisecond))
	l.finish()
}

// A like commits on the primary, and its replica never gets it, because the wait for the
// replica is cut off. Neither that like nor a repeat that finds it may be acknowledged:
// the replica takes over without it.
func TestCommitThatTheReplicaLacks(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	primary, replica, url := replicated(t)
	cfg := testConfig(url)
	cfg.QueueAge = 3 * time.Second
	// A drain may have been cut off as well, seen here, and lost with the primary.
	cfg.OnFatal = func(err error) { t.Logf("the node says: %v", err) }
	l := openTest(t, cfg)
	apply(t, l, like.Command{Item: post("1"), User: "before", Op: like.OpLike})
	replica.Kill9(t)

	cmd := like.Command{Item: post("1"), User: "u", Op: like.OpLike}
	var waits sync.WaitGroup
	var first error
	waits.Go(func() { _, first = l.Apply(t.Context(), cmd) })
	direct := connect(t, primary.URL())
	eventually(t, "a commit waits for the replica", func() bool {
		var waits bool
		err := direct.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT')`).Scan(&waits)
		return err == nil && waits
	})
	primary.Sever(t)
	eventually(t, "the like is committed here", func() bool {
		states, err := l.Liked(t.Context(), "u", []like.Item{post("1")})
		return err == nil && states[0].Liked
	})
	_, repeat := l.Apply(t.Context(), cmd)
	waits.Wait()
	for _, err := range []error{first, repeat} {
		if !errors.Is(err, like.ErrUnavailable) {
			t.Errorf("a like that the replica lacks ended with %v, want ErrUnavailable", err)
		}
	}
	primary.Kill9(t)
	replica.Start(t)
	replica.Promote(t)
	eventually(t, "the replica takes over", func() bool {
		_, err := l.Apply(t.Context(), like.Command{Item: post("2"), User: "u", Op: like.OpLike})
		return err == nil
	})
	states, err := l.Liked(t.Context(), "u", []like.Item{post("1")})
	if err != nil || states[0].Liked {
		t.Errorf("the replica has %+v, %v: nothing was tested", states, err)
	}
}

// Somebody cancels the wait of a COMMIT for the replica, as operators do with what seems
// to hang. The COMMIT succeeds then, and is no acknowledgement.
func TestCancelledWaitForTheReplica(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	primary, replica, url := replicated(t)
	cfg := testConfig(url)
	cfg.QueueAge = 3 * time.Second
	l := openTest(t, cfg)
	apply(t, l, like.Command{Item: post("1"), User: "before", Op: like.OpLike})
	replica.Kill9(t)
	ended := make(chan error, 1)
	go func() {
		_, err := l.Apply(t.Context(), like.Command{Item: post("1"), User: "u", Op: like.OpLike})
		ended <- err
	}()
	direct, cancelled := connect(t, primary.URL()), 0
	for {
		select {
		case err := <-ended:
			if !errors.Is(err, like.ErrUnavailable) || cancelled == 0 {
				t.Errorf("a like whose wait was cancelled %d times ended with %v, want ErrUnavailable", cancelled, err)
			}
			return
		default:
		}
		var n int
		err := direct.QueryRow(t.Context(), `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
			WHERE wait_event = 'SyncRep' AND (query = 'COMMIT' OR query LIKE '%emit_message%')`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		cancelled += n
	}
}

package postgres

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/test/servers"
)

// drift returns the items whose totals, and what they have still to move by, are not
// the number of their facts.
func drift(tb testing.TB, l *Ledger) (drifted []ledger.Audit) {
	tb.Helper()
	for a, err := range l.AuditAll(tb.Context(), false) {
		if err != nil {
			tb.Fatalf("AuditAll: %v", err)
		}
		if a.Drift() {
			drifted = append(drifted, a)
		}
	}
	return drifted
}

// Two nodes send the same pairs in opposite orders, likes and unlikes mixed, and drain
// what comes of it: nobody waits in a circle.
func TestBatchesNeverWaitInACircle(t *testing.T) {
	t.Parallel()
	url := servers.Database(t)
	both, conn := openNodes(t, hasty(url), 2), connect(t, url)
	if _, err := conn.Exec(t.Context(), "SELECT pg_stat_reset()"); err != nil { // of tests that had the database before
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			for range sized(25, 600) {
				cmds := make([]like.Command, 50)
				for k := range cmds {
					n := k
					if w%2 == 1 {
						n = len(cmds) - 1 - k
					}
					cmds[k] = like.Command{Item: postN(n % 7), User: userN(n), Op: like.OpLike}
					if rng.IntN(2) == 0 {
						cmds[k].Op = like.OpUnlike
					}
				}
				if _, err := both.all[w%2].ApplyMany(t.Context(), cmds); err != nil {
					t.Errorf("node %d: %v", w%2, err)
					return
				}
			}
		})
	}
	wg.Wait()
	var deadlocks int
	eventually(t, "what the sessions counted is told", func() bool {
		var told bool
		err := conn.QueryRow(t.Context(), `SELECT deadlocks, xact_commit > 20 FROM pg_stat_database WHERE datname = current_database()`).
			Scan(&deadlocks, &told)
		if err != nil {
			t.Fatal(err)
		}
		return told
	})
	if deadlocks != 0 {
		t.Errorf("%d deadlocks", deadlocks)
	}
	for k, l := range both.all {
		if stats := l.Stats(); stats.Retries != 0 {
			t.Errorf("node %d had to try %d batches again", k, stats.Retries)
		}
	}
	if drifted := drift(t, both.all[0]); drifted != nil {
		t.Errorf("drift: %+v", drifted)
	}
}

// The caller's own state is counted exactly once while totals stand still, through
// whichever node, however long the backlog is, and what a node drains that comes late
// is right too.
func TestBacklogCountsRight(t *testing.T) {
	t.Parallel()
	const others = 5
	cfg := hasty(servers.Database(t))
	item := post("1")
	begin := openTest(t, cfg)
	for n := range others {
		apply(t, begin, like.Command{Item: item, User: like.User(fmt.Sprintf("other%d", n)), Op: like.OpLike})
	}
	totalIs(t, begin, item, others)
	begin.Close()

	cfg.Drain = false
	both := openNodes(t, cfg, 2)
	want := func(ack ledger.Ack, own int64) {
		t.Helper()
		if ack.Count != others+own || ack.State.Liked != (own == 1) {
			t.Fatalf("acknowledged with %+v, want count %d", ack, others+own)
		}
	}
	for n := range sized(150, 3000) {
		user := userN(n)
		for range 1 + n%2 { // through alternating nodes
			want(apply(t, both, like.Command{Item: item, User: user, Op: like.OpLike}), 1)
			want(apply(t, both, like.Command{Item: item, User: user, Op: like.OpLike}), 1)
			want(apply(t, both, like.Command{Item: item, User: user, Op: like.OpUnlike}), 0)
		}
		if n%3 == 0 {
			want(apply(t, both, like.Command{Item: item, User: user, Op: like.OpLike}), 1)
		}
	}
	facts := others + int64(sized(150, 3000)/3)
	if a, err := both.Audit(t.Context(), item, false); err != nil || a.Drift() || a.Facts != facts {
		t.Fatalf("audit with a backlog: %+v, %v, want %d facts", a, err, facts)
	}
	totalIs(t, both, item, others) // without a drain no total moves
	cfg.Drain = true
	openTest(t, cfg)
	totalIs(t, both, item, facts)
	if ack := apply(t, both, like.Command{Item: item, User: "after", Op: like.OpLike}); ack.Count != facts+1 {
		t.Errorf("after the backlog: %+v, want count %d", ack, facts+1)
	}
}

// Nodes that drain at once, and end in the middle of it, move every total once.
func TestDrainsShareTheOutbox(t *testing.T) {
	t.Parallel()
	cfg := hasty(servers.Database(t))
	cfg.DrainInterval = time.Millisecond
	writer := openTest(t, cfg)
	stop := make(chan struct{})
	halt := sync.OnceFunc(func() { close(stop) })
	var wg sync.WaitGroup
	defer wg.Wait()
	defer halt() // also when the test fails
	for range 3 {
		wg.Go(func() { // nodes that come and go
			for {
				select {
				case <-stop:
					return
				default:
				}
				l, err := Open(t.Context(), cfg)
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-stop:
				case <-time.After(rand.N(30 * time.Millisecond)):
				}
				crash(l)
			}
		})
	}
	facts := map[like.Item]int64{}
	for n := range sized(60, 600) {
		cmds := make([]like.Command, 40)
		for k := range cmds {
			cmds[k] = like.Command{Item: postN(k % 5), User: like.User(fmt.Sprintf("u%d-%d", n, k)), Op: like.OpLike}
			facts[cmds[k].Item]++
		}
		if _, err := writer.ApplyMany(t.Context(), cmds); err != nil {
			t.Fatal(err)
		}
	}
	halt()
	for item, want := range facts {
		totalIs(t, writer, item, want)
	}
	if drifted := drift(t, writer); drifted != nil {
		t.Errorf("drift: %+v", drifted)
	}
}

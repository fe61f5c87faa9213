package move

import (
	"context"
	"io"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/ledger/postgres"
	"likewise/internal/like"
	"likewise/test/servers"
)

// TestMovePostgres moves from and to databases: the crowd likes on one node, and the
// mover is another one.
func TestMovePostgres(t *testing.T) {
	t.Parallel()
	one, two := []string{servers.Database(t)}, []string{servers.Database(t), servers.Database(t)}
	other := []string{servers.Database(t)}
	t.Run("away from it", func(t *testing.T) {
		testMoveNodes(t, openNode(t, one), openNode(t, one), open(t, "pebble"))
	})
	t.Run("to it", func(t *testing.T) {
		source := open(t, "pebble")
		testMoveNodes(t, source, source, openNode(t, two))
	})
	t.Run("from it to it", func(t *testing.T) {
		testMoveNodes(t, openNode(t, two), openNode(t, two), openNode(t, other))
	})
}

// openNode opens a ledger that waits neither for a disk nor gives up on a loaded machine.
func openNode(t *testing.T, urls []string) *postgres.Ledger {
	t.Helper()
	cfg := postgres.DefaultConfig()
	cfg.DrainInterval, cfg.QueueAge, cfg.MaxConnections, cfg.AcceptUnsafe = 10*time.Millisecond, time.Minute, 8, true
	for _, url := range urls {
		cfg.URLs = append(cfg.URLs, url+"&options=-c%20synchronous_commit%3Doff")
	}
	l, err := postgres.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func testMoveNodes(t *testing.T, node, source, target ledger.Ledger) {
	c := crowd{ledger: node, users: 200, items: 300, pause: lag / 100}
	c.fill(t, 3000, 1)
	stop := c.run(t, 2)
	defer stop()
	cfg := config()
	cfg.VerifyAll, cfg.Settle = false, time.Second // so that the feed has to name everything
	moved := 0
	cfg.Switch = func(context.Context, Report) error {
		moved = sameFacts(t, source, target)
		return nil
	}
	r, err := run(t.Context(), cfg, source, target)
	if err != nil || moved == 0 {
		t.Fatalf("moved %d, reported %+v, error %v", moved, r, err)
	}
	t.Logf("%+v", r)
	cmd := like.Command{Item: like.Item{Collection: "posts", ID: "1"}, User: "late", Op: like.OpLike}
	if _, err := node.Apply(t.Context(), cmd); err != nil {
		t.Errorf("the source does not move on: %v", err)
	}
	stop()
	if _, err := run(t.Context(), Config{Resume: true, BatchSize: 500, InFlight: 2, Out: io.Discard}, source, target); err != nil {
		t.Error(err)
	}
	sameFacts(t, source, target)
	for a, err := range target.AuditAll(t.Context(), false) {
		if err != nil || a.Drift() {
			t.Errorf("audit of the target: %+v, %v", a, err)
		}
	}
}

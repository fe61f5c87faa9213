package deploy

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/test/harness"
	"likewise/test/servers"
)

// TestParts follows likes through processes of one part each: what the one leaves
// undone the next one does when it starts.
func TestParts(t *testing.T) {
	harness.SkipUnlessHeavy(t, "three processes have to be late and catch up")
	keys, database := harness.NewKeys(t), servers.Database(t)
	part := func(role string, flags ...string) *harness.Node {
		n := harness.NewNode(t, harness.NodeConfig{Keys: keys, Flags: slices.Concat([]string{"--role", role, "--ledger", database}, patient, flags)})
		n.StartReady(t.Context())
		return n
	}
	post := harness.Post("1")

	api := part("api", "--audit-every", "100ms")
	client := clientOf(t, keys, api)
	for i := range users {
		if got, err := client.Like(t.Context(), fmt.Sprint("user-", i), post); err != nil || !got.Liked || got.Count < 1 {
			t.Fatalf("like without an aggregator: %+v, %v", got, err)
		}
	}
	stays(t, "the total without an aggregator", func() error { return counts(t, client, post, 0) })
	if got, err := client.State(t.Context(), "user-0", post); err != nil || !got.Liked || got.Count != 1 {
		t.Fatalf("own state while totals are late: %+v, %v, want a count with the own like", got, err)
	}

	aggregator := part("aggregator", "--audit-every", "100ms")
	eventually(t, func() error { return counts(t, client, post, users) })

	behind := connect(t, database)
	drift(t, behind, post)
	stays(t, "drift without a reconciler", func() error { return total(t, behind, post, users+5) })
	reconciler := part("reconciler", "--audit-every", "100ms")
	eventually(t, func() error { return total(t, behind, post, users) })
	eventually(t, func() error { return counts(t, client, post, users) })
	found := clientOf(t, keys, reconciler)
	if n, err := found.Metric(t.Context(), harness.DriftMetric); err != nil || n != 1 {
		t.Errorf("%s is %v, %v, want 1", harness.DriftMetric, n, err)
	}

	for name, n := range map[string]*harness.Node{"aggregator": aggregator, "reconciler": reconciler} {
		if isOpen(n.URL) {
			t.Errorf("the %s listens for users", name)
		}
	}
	for _, n := range []*harness.Node{api, aggregator, reconciler} {
		n.Stop()
	}
}

// TestPartOfAStoreOfOneProcess is refused with what to change.
func TestPartOfAStoreOfOneProcess(t *testing.T) {
	for _, role := range []string{"api", "aggregator", "reconciler"} {
		_, errs, code := harness.CLI(t.Context(), t, "serve", "--role", role, "--data-dir", t.TempDir())
		for _, want := range []string{role, "ledger is pebble", "set ledger to the URL of a PostgreSQL database", "or role to all"} {
			if code != 2 || !strings.Contains(errs, want) {
				t.Errorf("--role %s: exit code %d, and no %q in:\n%s", role, code, want, errs)
			}
		}
	}
}

// stays asks for a second, longer than any drain or audit of this test takes.
func stays(t *testing.T, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := harness.Poll(ctx, 20*time.Millisecond, func() (bool, error) { return false, ask() }); ctx.Err() == nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// isOpen reports whether somebody listens at a URL.
func isOpen(url string) bool {
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), time.Second)
	if err == nil {
		err = conn.Close()
	}
	return err == nil
}

func connect(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// drift damages the total of an item behind the service's back.
func drift(t *testing.T, conn *pgx.Conn, item harness.Item) {
	t.Helper()
	tag, err := conn.Exec(t.Context(), "UPDATE likewise.totals SET count = count + 5 WHERE item = $1", item.Collection+"/"+item.ID)
	if err != nil || tag.RowsAffected() == 0 {
		t.Fatalf("damage a total: %v rows, %v", tag.RowsAffected(), err)
	}
}

// total compares the total that the database has.
func total(t *testing.T, conn *pgx.Conn, item harness.Item, want int64) error {
	t.Helper()
	var got int64
	err := conn.QueryRow(t.Context(),
		"SELECT count FROM likewise.totals WHERE item = $1", item.Collection+"/"+item.ID).Scan(&got)
	if err == nil && got != want {
		err = fmt.Errorf("total %d, want %d", got, want)
	}
	return err
}

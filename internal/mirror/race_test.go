package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

// slowReader stops between what it read and who asked for it, while told to.
type slowReader struct {
	ledger.Reader
	reached, release chan struct{}
}

func (r *slowReader) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	totals, err := r.Reader.Totals(ctx, items)
	r.reached <- struct{}{}
	<-r.release
	return totals, err
}

// worker returns a column with a connection, to be worked by the test itself.
func worker(t testing.TB, r ledger.Reader, a *application) *column {
	t.Helper()
	m, err := New(nil, r, fast(a.table()), prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := m.columns["posts"]
	if err := c.connect(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.disconnect(context.Background()) })
	return c
}

// race has a slow mirror read a total, a like happen, and a quick mirror flush,
// before the slow one goes on. It returns what the row shows at the end: 2 is right.
func race(t *testing.T, lock bool) int64 {
	a := newApplication(t, posts, "INSERT INTO posts (id) VALUES (1)")
	l := newLedger(t, memory.Config{})
	stalled := &slowReader{l, make(chan struct{}), make(chan struct{})}
	slow, quick := worker(t, stalled, a), worker(t, l, a)
	if !lock {
		slow.sql.lock++
	}
	flush := func(c *column) chan error {
		c.changes.add("1", time.Now())
		done := make(chan error, 1)
		go func() { done <- c.flush(t.Context()) }()
		return done
	}
	likes(t, l, "1", 1)
	slowDone := flush(slow)
	<-stalled.reached
	likes(t, l, "1", 2)
	quickDone := flush(quick)
	eventually(t, "the quick mirror has written or waits for the slow one", func() bool {
		return get[int64](a, "SELECT like_count FROM posts") == 2 ||
			get[int](a, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 1
	})
	close(stalled.release)
	for _, done := range []chan error{slowDone, quickDone} {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	return get[int64](a, "SELECT like_count FROM posts")
}

// TestTwoMirrors shows that a slow mirror does not put an older number over a newer
// one, and that it would without the lock.
func TestTwoMirrors(t *testing.T) {
	if got := race(t, true); got != 2 {
		t.Errorf("the row shows %d, want 2", got)
	}
	if got := race(t, false); got != 1 {
		t.Errorf("without the lock the row shows %d: this test proves nothing", got)
	}
}

// TestLockIsOfTheColumn compares the keys that settings lead to.
func TestLockIsOfTheColumn(t *testing.T) {
	a := newApplication(t, posts, "ALTER TABLE posts ADD COLUMN other int", "CREATE SCHEMA app CREATE TABLE posts (id bigint, like_count int)")
	l := newLedger(t, memory.Config{})
	key := func(table, column string) int64 {
		b := *a
		c := worker(t, l, &b)
		c.place.count = column
		c.place.table, _ = parseName(table, 2)
		c.shape = shape{}
		if err := c.connect(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		return c.sql.lock
	}
	if key("posts", "like_count") != key("public.posts", "like_count") {
		t.Error("one column has two keys")
	}
	if key("posts", "like_count") == key("app.posts", "like_count") || key("posts", "like_count") == key("posts", "other") {
		t.Error("two columns have one key")
	}
}

// TestRandomLikes mirrors a ledger whose totals lag, by two mirrors at once, while
// rows are locked and connections cut.
func TestRandomLikes(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) SELECT generate_series(1, 50)")
	l := newLedger(t, memory.Config{Lag: 50 * time.Millisecond, Seed: 1})
	mirrors := []*running{run(t, l, l, fast(a.table())), run(t, l, l, fast(a.table()))}
	random := rand.New(rand.NewPCG(1, 2))
	for k := range 3000 {
		cmd := like.Command{Item: item(fmt.Sprint(random.IntN(60))), User: like.User(fmt.Sprint("u", random.IntN(20))), Op: like.OpLike}
		if random.IntN(3) == 0 {
			cmd.Op = like.OpUnlike
		}
		if _, err := l.Apply(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
		if k%1000 == 500 {
			a.sever()
		}
	}
	want := map[string]int64{}
	eventually(t, "totals are still", func() bool {
		audits := 0
		for audit, err := range l.AuditAll(t.Context(), false) {
			if err != nil {
				t.Fatal(err)
			}
			want[audit.Item.ID] = audit.Facts
			totals, err := l.Totals(t.Context(), []like.Item{audit.Item})
			if err != nil {
				t.Fatal(err)
			}
			if totals[0].Count != audit.Facts {
				audits++
			}
		}
		return audits == 0
	})
	for id := range want {
		if get[int](a, "SELECT count(*) FROM posts WHERE id::text = $1", id) == 0 {
			delete(want, id) // there is no row, and none appears
		}
	}
	a.become(want)
	for _, x := range mirrors {
		eventually(t, "the lag is gone", func() bool { return x.posts().changes.lag(time.Now()) == 0 })
	}
}

// TestLockedRow has the application hold a row: the others are written, and the
// application, which then wants one of those, is not in anybody's way.
func TestLockedRow(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) VALUES (1), (2)")
	l := newLedger(t, memory.Config{})
	x := run(t, l, l, fast(a.table()))
	x.swept()
	a.exec("BEGIN")
	a.exec("UPDATE posts SET title = 'y' WHERE id = 1")
	likes(t, l, "1", 1)
	likes(t, l, "2", 2)
	watch := connected(t, a.url)
	watch.become(map[string]int64{"1": 0, "2": 2})
	a.exec("UPDATE posts SET title = 'y' WHERE id = 2")
	if lag := x.posts().changes.lag(time.Now()); lag == 0 {
		t.Error("there is no lag")
	}
	a.exec("COMMIT")
	watch.become(map[string]int64{"1": 1, "2": 2})
	if got := get[int](watch, "SELECT count(*) FROM posts WHERE title = 'y'"); got != 2 {
		t.Errorf("%d of the application's updates are there", got)
	}
	if got := value(x.posts().metrics.errors); got != 0 {
		t.Errorf("%v errors: %s", got, x.log)
	}
}

// TestSettingsOfATransaction checks that a mirror that hangs gives its lock back, and
// that nothing is left on a connection that others use behind a pooler.
func TestSettingsOfATransaction(t *testing.T) {
	c := worker(t, newLedger(t, memory.Config{}), newApplication(t, posts))
	show := func(q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
	},
	) (limit string) {
		t.Helper()
		if err := q.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&limit); err != nil {
			t.Fatal(err)
		}
		return limit
	}
	tx, err := c.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.lock(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if got := show(tx); got != "20s" {
		t.Errorf("within a transaction the limit is %s", got)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := show(c.conn); got != "0" {
		t.Errorf("after it the limit is %s", got)
	}
}

package mirror

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/test/servers"
)

// brokenReader fails from a moment on.
type brokenReader struct {
	ledger.Reader
	broken atomic.Bool
}

func (r *brokenReader) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	if r.broken.Load() {
		return nil, fmt.Errorf("%w: broken", like.ErrUnavailable)
	}
	return r.Reader.Totals(ctx, items)
}

// TestRestartWithoutFlush ends a mirror that could not flush any more, as a kill
// does. The next one finds what is missing, also in rows nobody likes meanwhile.
func TestRestartWithoutFlush(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) SELECT generate_series(1, 2500)", "UPDATE posts SET like_count = 9 WHERE id = 1234")
	l := newLedger(t, memory.Config{})
	r := &brokenReader{Reader: l}
	first := run(t, l, r, fast(a.table()))
	want := a.zeros()
	a.become(want)
	r.broken.Store(true)
	for _, id := range []string{"1", "1000", "1001", "2500"} {
		likes(t, l, id, 3)
		want[id] = 3
	}
	eventually(t, "the lag shows what is not written", func() bool { return first.posts().changes.lag(time.Now()) > 0 })
	first.end()
	if n := get[int](a, "SELECT count(*) FROM posts WHERE like_count <> 0"); n != 0 {
		t.Fatalf("%d rows were written", n)
	}
	second := run(t, l, l, fast(a.table()))
	second.swept()
	a.become(want)
	if got := value(second.posts().metrics.written); got != 4 {
		t.Errorf("%v rows written, want only the 4 that differ", got)
	}
	if got := value(second.posts().metrics.swept); got != 2500 {
		t.Errorf("%v rows compared, want 2500", got)
	}
}

func (a *application) zeros() map[string]int64 { return zeros(a.counts("posts", "id", "like_count")) }

// TestLastFlush ends a worker long before its next flush.
func TestLastFlush(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) VALUES (1)")
	l := newLedger(t, memory.Config{})
	c := worker(t, l, a)
	c.cfg.Interval = time.Hour
	change := func(likers int) {
		likes(t, l, "1", likers)
		c.changes.add("1", time.Now())
	}
	change(1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.run(ctx, t.Context())
	}()
	a.become(map[string]int64{"1": 1})
	change(3)
	stop()
	<-ended
	if got := get[int64](a, "SELECT like_count FROM posts"); got != 3 {
		t.Errorf("the row shows %d at the end, want 3", got)
	}
	eventually(t, "no connection is left", func() bool {
		return get[int](a, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'likewise mirror' AND datname = current_database()") == 0
	})
}

// TestDatabaseDown stops the database under a mirror and starts it again.
func TestDatabaseDown(t *testing.T) {
	server := servers.Postgres(t)
	url := server.Database(t)
	a := connected(t, url, posts, "INSERT INTO posts (id) VALUES (1), (2)")
	l := newLedger(t, memory.Config{})
	x := run(t, l, l, fast(a.table()))
	likes(t, l, "1", 1)
	a.become(map[string]int64{"1": 1, "2": 0})
	x.swept() // so that only a change can fail
	server.StopImmediate(t)
	likes(t, l, "1", 2)
	likes(t, l, "2", 5)
	eventually(t, "several attempts fail", func() bool { return value(x.posts().metrics.errors) >= 3 })
	if lag := x.posts().changes.lag(time.Now()); lag < time.Second/2 {
		t.Errorf("the lag is %v", lag)
	}
	server.Start(t)
	a = connected(t, url)
	a.become(map[string]int64{"1": 2, "2": 5})
	eventually(t, "the lag is gone", func() bool { return x.posts().changes.lag(time.Now()) == 0 })
	if got := x.said("counts are not mirrored"); got != 1 {
		t.Errorf("the failure is logged %d times: %s", got, x.log)
	}
	if got := x.said("counts are mirrored"); got != 2 {
		t.Errorf("that it works is logged %d times: %s", got, x.log)
	}
}

// TestBehindPooler mirrors through a pooler that lends a connection for each
// transaction, by two mirrors that share what connections there are.
func TestBehindPooler(t *testing.T) {
	server := servers.Postgres(t)
	url := server.Database(t)
	a := connected(t, url, posts, "INSERT INTO posts (id) SELECT generate_series(1, 1500)")
	table := a.table()
	table.URL = servers.PgBouncer(t, url).URL()
	l := newLedger(t, memory.Config{})
	mirrors := []*running{run(t, l, l, fast(table)), run(t, l, l, fast(table))}
	want := a.zeros()
	for id := range want {
		likes(t, l, id, 2)
		want[id] = 2
	}
	a.become(want)
	for _, x := range mirrors {
		x.swept()
		if got := value(x.posts().metrics.errors); got != 0 {
			t.Errorf("%v errors: %s", got, x.log)
		}
	}
}

// sever cuts the connections of all mirrors of the database.
func (a *application) sever() {
	a.t.Helper()
	eventually(a.t, "a connection is cut", func() bool {
		return get[int](a, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'likewise mirror'") > 0
	})
}

// TestDatabaseOfYesterday puts an older copy of the rows behind the same address.
func TestDatabaseOfYesterday(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) VALUES (1)")
	l := newLedger(t, memory.Config{})
	x := run(t, l, l, fast(a.table()))
	x.swept()
	likes(t, l, "1", 3)
	a.become(map[string]int64{"1": 3})
	a.exec("UPDATE posts SET like_count = 1")
	a.sever()
	likes(t, l, "2", 1) // has the mirror notice
	a.become(map[string]int64{"1": 3})
}

// feeds is a feeder that fails once it was told to.
type feeds struct {
	ledger.Feeder
	fail   chan struct{}
	opened atomic.Int64
}

func (f *feeds) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		if f.opened.Add(1) > 1 {
			for batch, err := range f.Feeder.Feed(ctx) {
				if !yield(batch, err) {
					return
				}
			}
			return
		}
		if !yield(nil, nil) {
			return
		}
		select { // nothing of what happens meanwhile is shown
		case <-f.fail:
			yield(nil, like.ErrOverloaded)
		case <-ctx.Done():
			yield(nil, ctx.Err())
		}
	}
}

// TestGapOfTheFeed loses changes in the feed.
func TestGapOfTheFeed(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) VALUES (1), (2)")
	l := newLedger(t, memory.Config{})
	f := &feeds{Feeder: l, fail: make(chan struct{})}
	x := run(t, f, l, fast(a.table()))
	x.swept()
	likes(t, l, "1", 3)
	close(f.fail)
	a.become(map[string]int64{"1": 3, "2": 0})
	likes(t, l, "2", 1)
	a.become(map[string]int64{"1": 3, "2": 1})
	eventually(t, "the lag is gone", func() bool { return x.posts().changes.lag(time.Now()) == 0 })
	if got := x.said("feed of totals ended early"); got != 1 {
		t.Errorf("said %d times", got)
	}
}

// TestTooManyChanges has more items change than are kept.
func TestTooManyChanges(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) SELECT generate_series(1, 5000)")
	l := newLedger(t, memory.Config{})
	cfg := fast(a.table())
	cfg.MaxChanged = 1000
	x := run(t, l, l, cfg)
	x.swept()
	a.exec("BEGIN")
	a.exec("LOCK TABLE posts IN SHARE MODE") // no flush gets through
	likes(t, l, "1", 1)
	for id := 2; id <= 5000; id++ {
		likes(t, l, fmt.Sprint(id), 1)
	}
	eventually(t, "the set is dropped", func() bool {
		c := x.posts().changes
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.ids)+c.taken > 1000 {
			t.Fatalf("%d ids are kept", len(c.ids)+c.taken)
		}
		return c.asked && !c.lost.IsZero()
	})
	if lag := x.posts().changes.lag(time.Now()); lag == 0 {
		t.Error("there is no lag")
	}
	a.exec("COMMIT")
	eventually(t, "every row is right", func() bool { return get[int](a, "SELECT count(*) FROM posts WHERE like_count = 1") == 5000 })
	eventually(t, "the lag is gone", func() bool { return x.posts().changes.lag(time.Now()) == 0 })
}

// TestLedgerCloses ends the ledger first.
func TestLedgerCloses(t *testing.T) {
	a := newApplication(t, posts)
	l := memory.New(memory.Config{})
	m, err := New(l, l, fast(a.table()), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(t.Context()) }()
	eventually(t, "a sweep ends", func() bool { return value(m.columns["posts"].metrics.sweptAt) > 0 })
	l.Close()
	if err := <-ended; !errors.Is(err, like.ErrClosed) {
		t.Errorf("ended with %v", err)
	}
}

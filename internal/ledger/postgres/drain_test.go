package postgres

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/internal/like"
	"likewise/test/servers"
)

// backlog puts rows of so many items each, all different, into a shard's outbox.
func backlog(t *testing.T, s *shard, rows, items int) {
	t.Helper()
	execute(t, s, `INSERT INTO likewise.outbox (last, items, deltas)
		SELECT 1, array_agg('posts/' || g || '-' || k), array_agg(1) FROM generate_series(1, $1::int) g, generate_series(1, $2::int) k
		GROUP BY g ORDER BY g`, rows, items)
}

// drains drains all there is, and returns how many totals each drain moved.
func drains(t *testing.T, s *shard) []int {
	t.Helper()
	eventually(t, "the outbox is drained", func() bool {
		if err := s.drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		return waits(t, s.read) == 0
	})
	rows, err := s.read.Query(t.Context(), "SELECT cardinality(items) FROM likewise.drains ORDER BY tx")
	if err != nil {
		t.Fatal(err)
	}
	moved, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	return moved
}

// A drain is bounded by its items as well as by its rows, however large a row is, and
// takes many small rows at once.
func TestDrainsAreBounded(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		rows, items int
		want        []int
	}{
		"hot":   {300, 1, []int{256, 44}},
		"large": {20, 1000, []int{9000, 9000, 2000}},
		"huge":  {3, 10_000, []int{10_000, 10_000, 10_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := idle(t, servers.Database(t))
			backlog(t, l.shards[0], of.rows, of.items)
			if got := drains(t, l.shards[0]); !slices.Equal(got, of.want) {
				t.Errorf("drains of %d rows of %d items moved %v totals, want %v", of.rows, of.items, got, of.want)
			}
		})
	}
}

// Behind a drain that failed come small ones, which grow again.
func TestDrainsBehindAFailure(t *testing.T) {
	t.Parallel()
	url := servers.Database(t)
	l, _ := idle(t, url)
	s, other := l.shards[0], connect(t, url)
	backlog(t, s, 20, 1)
	for _, sql := range []string{"BEGIN", "INSERT INTO likewise.totals VALUES ('posts/1-1', 0, 0)"} { // what a drain waits for
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.drain(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a drain that waits ended with %v", err)
	}
	rests(t, url, "query LIKE '%likewise.outbox%' AND state = 'active'") // the drain is cancelled
	if _, err := other.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if got, want := drains(t, s), []int{1, 2, 4, 8, 5}; !slices.Equal(got, want) {
		t.Errorf("drains behind a failure moved %v totals, want %v", got, want)
	}
}

// While a drain of its own waits, a node is ready and tells what others drain.
func TestNodeFollowsBesideADrain(t *testing.T) {
	t.Parallel()
	url := servers.Database(t)
	l, other := openTest(t, hasty(url)), connect(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	next, stop := iter.Pull2(l.Feed(ctx))
	defer stop()
	if _, err, _ := next(); err != nil {
		t.Fatal(err)
	}
	run := func(sql string) {
		t.Helper()
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run("BEGIN")
	run("INSERT INTO likewise.totals VALUES ('posts/1', 0, 0)")
	defer run("ROLLBACK")
	apply(t, l, like.Command{Item: post("1"), User: "u", Op: like.OpLike})
	eventually(t, "the drain waits", func() bool {
		var waiting bool
		err := l.shards[0].read.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waiting)
		return err == nil && waiting
	})
	drained := connect(t, url)
	if _, err := drained.Exec(t.Context(), `INSERT INTO likewise.drains (last, items, counts, versions) VALUES (1, '{posts/2}', '{1}', '{1}')`); err != nil {
		t.Fatal(err)
	}
	if batch, err, _ := next(); len(batch) != 1 || batch[0].Item != post("2") {
		t.Errorf("beside a drain that waits the feed shows %v, %v", batch, err)
	}
	silent := l.shards[0].alive.Load()
	eventually(t, "the database is known to answer", func() bool { return l.shards[0].alive.Load() > silent })
	if l.Stats().Lag == 0 {
		t.Error("a like that waits is not told as lag")
	}
}

// On a slow disk totals go on moving.
func TestDrainsOfASlowDisk(t *testing.T) {
	heavyTest(t)
	t.Parallel()
	l, _ := idle(t, servers.Database(t))
	s := l.shards[0]
	execute(t, s, `CREATE FUNCTION likewise.disk() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.005); RETURN NEW; END'`)
	execute(t, s, `CREATE TRIGGER disk BEFORE INSERT ON likewise.totals FOR EACH ROW EXECUTE FUNCTION likewise.disk()`)
	backlog(t, s, 20, 500)
	for deadline := time.Now().Add(5 * time.Minute); waits(t, s.read) > 0; {
		if err := s.drain(t.Context()); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d rows still wait", waits(t, s.read))
		}
	}
}

package mirror

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/internal/ledger/memory"
)

// TestPlans reads how the database finds rows: by the index, whatever the type of the
// id, also where it would rather read the whole table.
func TestPlans(t *testing.T) {
	a := newApplication(t, "CREATE DOMAIN positive AS bigint CHECK (VALUE > 0)")
	for _, tt := range []struct{ kind, id string }{
		{"bigint", "n"}, {"integer", "n"}, {"positive", "n"}, {"uuid", "md5(n::text)::uuid"}, {"text", "md5(n::text)"}, {"varchar(40)", "md5(n::text)"}, {"char(40)", "md5(n::text)"},
	} {
		a.exec("DROP TABLE IF EXISTS posts")
		a.exec("CREATE TABLE posts (id " + tt.kind + " PRIMARY KEY, like_count bigint NOT NULL)")
		a.exec("INSERT INTO posts SELECT " + tt.id + ", 0 FROM generate_series(1, 20000) n")
		a.exec("ANALYZE posts")
		c := worker(t, newLedger(t, memory.Config{}), a)
		rows, err := a.conn.Query(t.Context(), "SELECT id::text FROM posts LIMIT 5000")
		if err != nil {
			t.Fatal(err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for what, plan := range map[string]string{
			"write": c.explain(t, c.sql.write, ids, make([]int64, len(ids))), "first": c.explain(t, c.sql.first), "next": c.explain(t, c.sql.next, ids[0]),
		} {
			if strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "Sort") || !strings.Contains(plan, "posts_pkey") {
				t.Errorf("%s, %s:\n%s", tt.kind, what, plan)
			}
		}
	}
}

func (c *column) explain(t *testing.T, query string, args ...any) string {
	t.Helper()
	tx, err := c.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if err := c.lock(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.Query(t.Context(), "EXPLAIN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func TestTableWithoutIndex(t *testing.T) {
	a := newApplication(t)
	for create, warned := range map[string]int{
		"CREATE TABLE posts (id bigint, like_count int)":                                       1,
		"CREATE TABLE posts (id bigint, like_count int, tenant int, PRIMARY KEY (tenant, id))": 1,
		"CREATE TABLE posts (id bigint, like_count int, tenant int, PRIMARY KEY (id, tenant))": 0,
	} {
		a.exec("DROP TABLE IF EXISTS posts")
		a.exec(create)
		l := newLedger(t, memory.Config{})
		x := run(t, l, l, fast(a.table()))
		x.swept()
		x.end()
		if got := x.said("no index begins with the id column"); got != warned {
			t.Errorf("%s: %d warnings, want %d", create, got, warned)
		}
	}
}

// BenchmarkFlush writes as many changed rows of a table with a million as one flush
// may have.
func BenchmarkFlush(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			a := newApplication(b, posts, "INSERT INTO posts (id, title) SELECT n, repeat('t', 100) FROM generate_series(1, 1000000) n", "VACUUM ANALYZE posts")
			l := newLedger(b, memory.Config{})
			for k := range n {
				likes(b, l, fmt.Sprint(k*7), 1)
			}
			c := worker(b, l, a)
			for b.Loop() {
				b.StopTimer()
				a.exec("UPDATE posts SET like_count = 0 WHERE like_count <> 0")
				for k := range n {
					c.changes.add(fmt.Sprint(k*7), time.Now())
				}
				b.StartTimer()
				if err := c.flush(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			if lag := c.changes.lag(time.Now()); lag != 0 {
				b.Fatalf("lag %v", lag)
			}
		})
	}
}

// BenchmarkSweep compares a million rows that are right.
func BenchmarkSweep(b *testing.B) {
	a := newApplication(b, posts, "INSERT INTO posts (id, title) SELECT n, repeat('t', 100) FROM generate_series(1, 1000000) n", "VACUUM ANALYZE posts")
	c := worker(b, newLedger(b, memory.Config{}), a)
	for b.Loop() {
		c.changes.askSweep()
		for c.beginSweep(time.Now()); c.sweep.running; {
			if err := c.page(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
}

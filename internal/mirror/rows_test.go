package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

// TestTableAppears begins without a table, and goes through what may be wrong with one.
func TestTableAppears(t *testing.T) {
	a := newApplication(t)
	l := newLedger(t, memory.Config{})
	likes(t, l, "1", 2)
	x := run(t, l, l, fast(a.table()))
	retried := func() {
		t.Helper()
		seen := value(x.posts().metrics.errors)
		eventually(t, "another attempt", func() bool { return value(x.posts().metrics.errors) >= seen+1 })
	}
	retried()
	retried()
	if x.said("sees no table") != 1 || x.said("counts are not mirrored") != 1 {
		t.Errorf("not said once: %s", x.log)
	}
	a.exec("CREATE TABLE posts (id bigint PRIMARY KEY, like_count bigint)")
	a.exec("INSERT INTO posts VALUES (1)")
	a.become(map[string]int64{"1": 2})
	a.exec("ALTER TABLE posts RENAME TO old")
	likes(t, l, "1", 3)
	retried()
	if lag := x.posts().changes.lag(time.Now()); lag == 0 {
		t.Error("there is no lag")
	}
	a.exec("CREATE TABLE posts (id text PRIMARY KEY, like_count bigint)") // another table of the name, of another type
	a.exec("INSERT INTO posts VALUES ('1'), ('x')")
	a.become(map[string]int64{"1": 3, "x": 0})
}

// TestUnfitTables reads what the operator is told.
func TestUnfitTables(t *testing.T) {
	a := newApplication(t)
	for _, tt := range []struct{ create, want string }{
		{"SELECT 1", `user postgres sees no table "posts" in the database t`},
		{"CREATE VIEW posts AS SELECT 1::bigint AS id, 2::bigint AS like_count", `"posts" is not a table`},
		{"CREATE TABLE posts (ID2 bigint, like_count bigint)", `table "posts" has no column "id"`},
		{"CREATE TABLE posts (id bigint)", `table "posts" has no column "like_count"`},
		{"CREATE TABLE posts (id numeric(20,0), like_count bigint)", "is numeric(20,0), whose values cannot be matched"},
		{"CREATE TABLE posts (id bigint, like_count text)", "is text, which cannot take a count"},
		{"CREATE TABLE posts (id bigint, like_count bigint GENERATED ALWAYS AS (id) STORED)", "is bigint, which cannot take a count"},
		{
			`CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
			CREATE TABLE posts (id text COLLATE loose, like_count bigint)`, "whose values cannot be matched",
		},
	} {
		a.exec("BEGIN")
		a.exec(tt.create)
		p, err := a.table().parse()
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = inspect(t.Context(), a.conn, p)
		if !errors.Is(err, like.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.create, err, tt.want)
		}
		a.exec("ROLLBACK")
	}
}

// TestOneStatement counts the statements and the rows that a flush writes, as the
// table's own triggers see them.
func TestOneStatement(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) SELECT generate_series(1, 3000)",
		"CREATE TABLE seen (statements int, touched int)", "INSERT INTO seen VALUES (0, 0)",
		`CREATE FUNCTION one() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE seen SET statements = statements + 1; RETURN NULL; END'`,
		`CREATE FUNCTION each() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE seen SET touched = touched + 1; RETURN NULL; END'`,
		"CREATE TRIGGER one AFTER UPDATE ON posts FOR EACH STATEMENT EXECUTE FUNCTION one()",
		"CREATE TRIGGER each AFTER UPDATE ON posts FOR EACH ROW EXECUTE FUNCTION each()")
	l := newLedger(t, memory.Config{})
	c := worker(t, l, a)
	for id := range 3000 {
		likes(t, l, fmt.Sprint(id+1), 1)
		c.changes.add(fmt.Sprint(id+1), time.Now())
	}
	for _, want := range []struct{ statements, touched int }{{1, 3000}, {2, 3000}} {
		if err := c.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := get[int](a, "SELECT statements FROM seen"); got != want.statements {
			t.Errorf("%d statements, want %d", got, want.statements)
		}
		if got := get[int](a, "SELECT touched FROM seen"); got != want.touched {
			t.Errorf("%d rows touched, want %d", got, want.touched)
		}
		for id := range 3000 { // the same again
			c.changes.add(fmt.Sprint(id+1), time.Now())
		}
	}
}

// TestLeastRights mirrors as a user who may do what docs/operations.md grants.
func TestLeastRights(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) VALUES (1)", "CREATE ROLE likewise LOGIN",
		"GRANT USAGE ON SCHEMA public TO likewise", "GRANT SELECT (id, like_count), UPDATE (like_count) ON posts TO likewise")
	t.Cleanup(func() {
		if _, err := a.conn.Exec(context.Background(), "DROP OWNED BY likewise; DROP ROLE likewise"); err != nil {
			t.Error(err)
		}
	})
	l := newLedger(t, memory.Config{})
	table := a.table()
	table.URL = strings.Replace(a.url, "postgres@", "likewise@", 1)
	x := run(t, l, l, fast(table))
	x.swept()
	likes(t, l, "1", 2)
	a.become(map[string]int64{"1": 2})
	a.exec("REVOKE UPDATE (like_count) ON posts FROM likewise")
	likes(t, l, "1", 3)
	eventually(t, "the lack of the right is told", func() bool { return x.said("permission denied for table posts") > 0 })
	if got := value(x.posts().metrics.refused); got != 0 {
		t.Errorf("%v rows are blamed for it", got)
	}
	a.exec("GRANT UPDATE (like_count) ON posts TO likewise")
	a.become(map[string]int64{"1": 3})
}

// TestTooSlowStatement has a database that ends large statements: what did not fit
// into one is swept in smaller parts.
func TestTooSlowStatement(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) SELECT generate_series(1, 1500)",
		`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
			IF (SELECT count(*) FROM rows) > 1000 THEN PERFORM pg_sleep(60); END IF; RETURN NULL; END'`,
		"CREATE TRIGGER slow AFTER UPDATE ON posts REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION slow()")
	l := newLedger(t, memory.Config{})
	b := *a
	b.url += "&statement_timeout=2000"
	c := worker(t, l, &b)
	for id := range 1500 {
		likes(t, l, fmt.Sprint(id+1), 1)
		c.changes.add(fmt.Sprint(id+1), time.Now())
	}
	if err := c.flush(t.Context()); !errors.Is(err, errTooLarge) {
		t.Fatalf("flushed with %v", err)
	}
	for c.beginSweep(time.Now()); c.sweep.running; {
		if c.changes.lag(time.Now()) == 0 {
			t.Error("there is no lag before the end of the sweep")
		}
		if err := c.page(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := get[int](a, "SELECT count(*) FROM posts WHERE like_count = 1"); n != 1500 {
		t.Errorf("%d rows are right", n)
	}
	if lag := c.changes.lag(time.Now()); lag != 0 {
		t.Errorf("lag %v", lag)
	}
}

// TestSweepAgain lets sweeps begin without a reason, and rows be there that no item
// can have.
func TestSweepAgain(t *testing.T) {
	a := newApplication(t, "CREATE TABLE posts (id text, like_count int)",
		`INSERT INTO posts VALUES ('', 7), ('.', 7), (E'a\nb', 7), (repeat('x', 129), 7), ('1', 7), ('2', NULL), ('3', 0)`)
	l := newLedger(t, memory.Config{})
	likes(t, l, "3", 3)
	cfg := fast(a.table())
	cfg.Sweep = 20 * time.Millisecond
	x := run(t, l, l, cfg)
	want := map[string]int64{"": 7, ".": 7, "a\nb": 7, strings.Repeat("x", 129): 7, "1": 0, "2": 0, "3": 3}
	a.become(want)
	a.exec("UPDATE posts SET like_count = 9 WHERE id = '3'")
	a.become(want)
	a.exec("INSERT INTO posts VALUES (NULL, 7)") // has no text to compare
	swept := value(x.posts().metrics.swept)
	eventually(t, "two more sweeps", func() bool { return value(x.posts().metrics.swept) >= swept+14 })
	if got := get[int](a, "SELECT like_count FROM posts WHERE id IS NULL"); got != 7 {
		t.Errorf("a row without id shows %d", got)
	}
}

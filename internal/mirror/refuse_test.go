package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"likewise/internal/ledger/memory"
)

// refusals are ways in which a table refuses to have row 7 written, with what the
// database says then and how that ends.
var refusals = map[string]struct{ begin, says, end string }{
	"trigger": {
		`CREATE FUNCTION archived() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'post % is archived', OLD.id; END $$;
		CREATE TRIGGER archived BEFORE UPDATE ON posts FOR EACH ROW WHEN (OLD.id = 7) EXECUTE FUNCTION archived()`,
		"post 7 is archived", "DROP TRIGGER archived ON posts",
	},
	"trigger at the commit": {
		`CREATE FUNCTION divided() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / (OLD.id - 7); END $$;
		CREATE CONSTRAINT TRIGGER divided AFTER UPDATE ON posts DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (OLD.id = 7) EXECUTE FUNCTION divided()`,
		"division by zero", "DROP TRIGGER divided ON posts",
	},
	"constraint": {
		"ALTER TABLE posts ADD CONSTRAINT unliked CHECK (id <> 7 OR like_count = 0)",
		`violates check constraint \"unliked\"`, "ALTER TABLE posts DROP CONSTRAINT unliked",
	},
	"policy": {
		`ALTER TABLE posts ENABLE ROW LEVEL SECURITY;
		CREATE POLICY unliked ON posts USING (true) WITH CHECK (id <> 7)`,
		"violates row-level security policy", "DROP POLICY unliked ON posts; CREATE POLICY free ON posts USING (true)",
	},
}

// refusing returns an application with posts 1 to 2500 that refuses to have row 7
// written, and the table as a user without special rights sees it.
func refusing(t *testing.T, begin string) (*application, Table) {
	a := newApplication(t, posts, "INSERT INTO posts (id) SELECT generate_series(1, 2500)",
		"CREATE ROLE guest LOGIN",
		"GRANT USAGE ON SCHEMA public TO guest", "GRANT SELECT, UPDATE ON posts TO guest", begin)
	t.Cleanup(func() {
		if _, err := a.conn.Exec(context.Background(), "DROP OWNED BY guest; DROP ROLE guest"); err != nil {
			t.Error(err)
		}
	})
	table := a.table()
	table.URL = strings.Replace(a.url, "postgres@", "guest@", 1)
	return a, table
}

// TestRowRefuses has one row refuse its count, beside others whose counts change, and
// then refuse no more.
func TestRowRefuses(t *testing.T) {
	for name, tt := range refusals {
		t.Run(name, func(t *testing.T) {
			a, table := refusing(t, tt.begin)
			l := newLedger(t, memory.Config{})
			x := run(t, l, l, fast(table))
			x.swept()
			refused := func() float64 { return value(x.posts().metrics.refused) }
			want := a.zeros()
			for n := 1; n <= 2; n++ { // the second change tries the row again
				before := refused()
				for _, id := range []string{"7", "8", "2000"} {
					likes(t, l, id, n)
				}
				want["8"], want["2000"] = int64(n), int64(n)
				a.become(want)
				eventually(t, "the row is left out", func() bool { return refused() > before && x.posts().changes.lag(time.Now()) == 0 })
			}
			if x.said(tt.says) != 1 || x.said("id=7") != 1 || x.said("level=WARN") != 1 {
				t.Errorf("not said once: %s", x.log)
			}
			if got := value(x.posts().metrics.errors); got != 0 {
				t.Errorf("%v errors: %s", got, x.log)
			}
			a.exec(tt.end)
			x.posts().changes.askSweep()
			want["7"] = 2
			a.become(want)
		})
	}
}

// TestSweepPassesRowThatRefuses leaves all to sweeps, for which the row is in the way
// of its page and of those behind it.
func TestSweepPassesRowThatRefuses(t *testing.T) {
	for name, tt := range refusals {
		t.Run(name, func(t *testing.T) {
			a, table := refusing(t, tt.begin)
			l, want := newLedger(t, memory.Config{}), a.zeros()
			for _, id := range []string{"6", "7", "8", "2000"} {
				likes(t, l, id, 3)
				want[id] = 3
			}
			x := run(t, l, l, fast(table))
			x.swept()
			want["7"] = 0
			a.become(want)
			if got := value(x.posts().metrics.refused); got != 1 {
				t.Errorf("%v rows refused: %s", got, x.log)
			}
			a.exec(tt.end)
			x.posts().changes.askSweep()
			want["7"] = 3
			a.become(want)
			if got := value(x.posts().metrics.errors); got != 0 {
				t.Errorf("%v errors: %s", got, x.log)
			}
		})
	}
}

// counted has a sequence count the statements that write posts: a sequence keeps its
// value when a transaction fails.
const counted = `CREATE SEQUENCE attempts;
	CREATE FUNCTION attempt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('attempts'); RETURN NULL; END $$;
	CREATE TRIGGER attempt BEFORE UPDATE ON posts FOR EACH STATEMENT EXECUTE FUNCTION attempt()`

// TestRefusalsCostLittle counts the statements that it takes to write all rows but
// two that refuse and one that another transaction has.
func TestRefusalsCostLittle(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) SELECT generate_series(1, 1024)", counted,
		"ALTER TABLE posts ADD CHECK (id NOT IN (7, 700) OR like_count = 0)")
	l := newLedger(t, memory.Config{})
	c := worker(t, l, a)
	for id := range 1024 {
		likes(t, l, fmt.Sprint(id+1), 1)
		c.changes.add(fmt.Sprint(id+1), time.Now())
	}
	other := connected(t, a.url, "BEGIN", "UPDATE posts SET title = 'y' WHERE id = 8")
	if err := c.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := get[int](a, "SELECT count(*) FROM posts WHERE like_count = 1"); got != 1021 {
		t.Errorf("%d rows are written, want 1021", got)
	}
	if left := c.changes.take(); len(left) != 1 || left[0] != "8" {
		t.Errorf("%q are left, want only the row that another transaction has", left)
	}
	if got := value(c.metrics.refused); got != 2 {
		t.Errorf("%v rows refused", got)
	}
	if got := get[int](a, "SELECT last_value FROM attempts"); got > 2+2*2*10 {
		t.Errorf("%d statements", got)
	}
	other.exec("COMMIT")
}

// TestRefusalsLeaveTimeForOthers has no time for halves: what a step does not come to
// is the next one's, and every step comes to something.
func TestRefusalsLeaveTimeForOthers(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) SELECT generate_series(1, 16)",
		"ALTER TABLE posts ADD CHECK (id % 2 = 0 OR like_count = 0)")
	l := newLedger(t, memory.Config{})
	c := worker(t, l, a)
	c.halving = -1
	for id := range 16 {
		likes(t, l, fmt.Sprint(id+1), 1)
	}
	c.changes.askSweep()
	for c.beginSweep(time.Now()); c.sweep.running; {
		if err := c.page(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for flushes := 0; c.changes.lag(time.Now()) > 0; flushes++ {
		if err := c.flush(t.Context()); err != nil || flushes > 16 {
			t.Fatalf("%d flushes: %v", flushes, err)
		}
	}
	if got := get[int](a, "SELECT count(*) FROM posts WHERE like_count = 1"); got != 8 {
		t.Errorf("%d rows are written, want 8", got)
	}
	if got := value(c.metrics.refused); got != 8 {
		t.Errorf("%v rows refused, want 8", got)
	}
}

// TestNoRowIsToBlame has the table refuse every statement, even one without rows.
func TestNoRowIsToBlame(t *testing.T) {
	a := newApplication(t, posts, "INSERT INTO posts (id) VALUES (1), (2)",
		`CREATE FUNCTION frozen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'posts are frozen'; END $$`,
		"CREATE TRIGGER frozen BEFORE UPDATE ON posts FOR EACH STATEMENT EXECUTE FUNCTION frozen()")
	l := newLedger(t, memory.Config{})
	x := run(t, l, l, fast(a.table()))
	likes(t, l, "1", 1)
	likes(t, l, "2", 1)
	eventually(t, "several attempts fail", func() bool { return value(x.posts().metrics.errors) >= 2 })
	if x.said("posts are frozen") != 1 || x.said("state=unfit") != 1 {
		t.Errorf("not said once: %s", x.log)
	}
	if got := value(x.posts().metrics.refused); got != 0 {
		t.Errorf("%v rows are blamed", got)
	}
	a.exec("DROP TRIGGER frozen ON posts")
	a.become(map[string]int64{"1": 1, "2": 1})
}

func TestAboutData(t *testing.T) {
	for code, want := range map[string]bool{
		"22003": true, "23514": true, "44000": true, "P0001": true, "42501": true,
		"08006": false, "40P01": false, "42P01": false, "42703": false, "53300": false, "57014": false, "57P01": false,
	} {
		reported := &pgconn.PgError{Code: code}
		if got := aboutData(fmt.Errorf("write: %w", reported)); got != want {
			t.Errorf("%s: %v", code, got)
		}
		if aboutData(ledgerError{reported}) {
			t.Errorf("%s of the ledger's own database is taken for the table's", code)
		}
	}
	if aboutData(nil) || aboutData(errors.New("connection lost")) {
		t.Error("what no database reported is about data")
	}
}

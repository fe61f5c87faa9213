package postgres

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"likewise/internal/like"
	"likewise/test/servers"
)

// idle is a node that neither drains nor looks at drains by itself, and a feed of it.
func idle(t *testing.T, urls ...string) (*Ledger, func() ([]like.Total, error, bool)) {
	t.Helper()
	cfg := hasty(urls...)
	cfg.Drain, cfg.DrainInterval = false, time.Hour
	l := openTest(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // of the whole test
	t.Cleanup(cancel)
	next, stop := iter.Pull2(l.Feed(ctx))
	t.Cleanup(stop)
	if batch, err, ok := next(); batch != nil || err != nil || !ok {
		t.Fatalf("the feed begins with %v, %v, %v", batch, err, ok)
	}
	return l, next
}

// waits counts the rows of a shard's outbox.
func waits(t *testing.T, pool *pgxpool.Pool) (rows int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM likewise.outbox").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// tellsAll demands that a standstill begins with nothing left in any database, and with
// so many totals told at once.
func tellsAll(t *testing.T, l *Ledger, next func() ([]like.Total, error, bool), totals int) {
	t.Helper()
	err := l.Freeze(t.Context(), func(context.Context) error {
		for _, s := range l.shards {
			if rows := waits(t, s.read); rows > 0 {
				t.Errorf("%d rows of database %d are told to nobody", rows, s.number)
			}
		}
		batch, err, _ := next()
		if len(batch) != totals {
			t.Errorf("the feed shows %v", batch)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// However long a backlog is, nothing of it is left when a standstill begins, in any
// database.
func TestFreezeDrainsABacklog(t *testing.T) {
	t.Parallel()
	l, next := idle(t, servers.Database(t), servers.Database(t))
	for _, s := range l.shards { // a drain of 256 rows takes 0.4 s
		execute(t, s, `CREATE FUNCTION likewise.disk() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.4); RETURN NULL; END'`)
		execute(t, s, `CREATE TRIGGER disk BEFORE INSERT ON likewise.totals FOR EACH STATEMENT EXECUTE FUNCTION likewise.disk()`)
		execute(t, s, `INSERT INTO likewise.outbox (last, items, deltas) SELECT 1, '{posts/1}', '{0}' FROM generate_series(1, 800)`)
	}
	tellsAll(t, l, next, 1)
}

// What another drain has taken is waited for, and told.
func TestFreezeWaitsForOtherDrains(t *testing.T) {
	t.Parallel()
	url := servers.Database(t)
	l, next := idle(t, url)
	apply(t, l, like.Command{Item: post("taken"), User: "u", Op: like.OpLike})
	other := connect(t, url)
	for _, sql := range []string{
		"BEGIN", "DELETE FROM likewise.outbox", `INSERT INTO likewise.totals VALUES ('posts/taken', 1, 1)`,
		`INSERT INTO likewise.drains (last, items, counts, versions) VALUES (1, '{posts/taken}', '{1}', '{1}')`,
	} {
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, l, like.Command{Item: post("left"), User: "u", Op: like.OpLike})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { tellsAll(t, l, next, 2) })
	totalIs(t, l, post("left"), 1) // the standstill has drained what it could
	if _, err := other.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
}

// A standstill that waits for another drain ends with its context.
func TestFreezeGivesUpWaiting(t *testing.T) {
	t.Parallel()
	url := servers.Database(t)
	l, _ := idle(t, url)
	apply(t, l, like.Command{Item: post("1"), User: "u", Op: like.OpLike})
	other := connect(t, url)
	for _, sql := range []string{"BEGIN", "SELECT FROM likewise.outbox FOR UPDATE"} {
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := l.Freeze(ctx, func(context.Context) error {
		t.Error("the standstill begins with a like that the feed does not tell")
		return nil
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the standstill ended with %v", err)
	}
}

// A standstill takes no connection from the reads, however few they have.
func TestFreezeLeavesReadsAlone(t *testing.T) {
	t.Parallel()
	cfg := hasty(servers.Database(t))
	cfg.MaxConnections = cfg.Writers + 2
	l := openTest(t, cfg)
	apply(t, l, like.Command{Item: post("1"), User: "u", Op: like.OpLike})
	err := l.Freeze(t.Context(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		for _, err := range l.Export(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("an export while the ledger stands still: %v", err)
	}
}

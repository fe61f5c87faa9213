package postgres

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"likewise/internal/like"
	"likewise/test/servers"
)

// refused opens a ledger that must not open, and returns the reason.
func refused(t *testing.T, cfg Config) string {
	t.Helper()
	l, err := Open(t.Context(), cfg)
	if err == nil {
		l.Close()
		t.Fatal("it opens")
	}
	if !errors.Is(err, like.ErrInvalid) {
		t.Errorf("%v is not ErrInvalid", err)
	}
	return err.Error()
}

func TestLedgerOpensWithItsDatabasesOnly(t *testing.T) {
	t.Parallel()
	a, b, c := servers.Database(t), servers.Database(t), servers.Database(t)
	two := openTest(t, hasty(a, b))
	for n := range 40 {
		apply(t, two, like.Command{Item: postN(n), User: "u", Op: like.OpLike})
	}
	openTest(t, hasty(c)).Close()
	for _, tt := range []struct {
		name string
		urls []string
		want string
	}{
		{"too few", []string{a}, "belongs to a ledger of 2 databases, 1 are configured"},
		{"one twice", []string{a, a}, "is configured twice"},
		{"a foreign one", []string{a, c}, "database 2 belongs to a ledger of 1 databases"},
		{"a new one too much", []string{a, b, servers.Database(t)}, "a database is new, but others hold likes already"},
		{"a new one instead", []string{a, servers.Database(t)}, "a database is new, but others hold likes already"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if why := refused(t, hasty(tt.urls...)); !strings.Contains(why, tt.want) || !strings.Contains(why, "Name exactly") {
				t.Errorf("refused with %q, want %q", why, tt.want)
			}
		})
	}
	swapped := openTest(t, hasty(b, a))
	for n := range 40 {
		if ack := apply(t, swapped, like.Command{Item: postN(n), User: "u", Op: like.OpLike}); ack.Count != 1 {
			t.Fatalf("%v is somewhere else when the URLs are in another order: %+v", postN(n), ack)
		}
	}
}

// Nodes that open new databases at once make one ledger of them.
func TestNodesMakeOneLedgerAtOnce(t *testing.T) {
	t.Parallel()
	urls := []string{servers.Database(t), servers.Database(t), servers.Database(t)}
	ledgers := make([]*Ledger, 3)
	errs := make([]error, len(ledgers))
	at := func(do func(k int) error) { // each node at once
		t.Helper()
		start := make(chan struct{})
		var wg sync.WaitGroup
		for k := range ledgers {
			wg.Go(func() {
				<-start
				errs[k] = do(k)
			})
		}
		close(start)
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, l := range ledgers {
			if l != nil {
				l.Close()
			}
		}
	}()
	at(func(k int) (err error) {
		ledgers[k], err = Open(t.Context(), hasty(urls...))
		return err
	})
	for range 40 { // with the tables there, they meet more often
		for _, s := range ledgers[0].shards {
			execute(t, s, "DELETE FROM likewise.layout")
		}
		at(func(k int) error {
			var pools []*pgxpool.Pool
			for _, s := range ledgers[k].shards {
				pools = append(pools, s.write)
			}
			if k == 1 { // its settings name them in another order
				slices.Reverse(pools)
			}
			_, err := arrange(t.Context(), pools)
			return err
		})
	}
}

// A node that stopped while it made a ledger leaves one that others can finish.
func TestLedgerHalfMadeIsFinished(t *testing.T) {
	t.Parallel()
	urls := []string{servers.Database(t), servers.Database(t), servers.Database(t)}
	l := openTest(t, hasty(urls...))
	l.Close()
	for _, left := range [][]string{{urls[0]}, {urls[1], urls[2]}, {urls[0], urls[2]}} {
		for _, url := range left {
			if _, err := connect(t, url).Exec(t.Context(), "DELETE FROM likewise.layout"); err != nil {
				t.Fatal(err)
			}
		}
		openTest(t, hasty(urls...)).Close()
	}
}

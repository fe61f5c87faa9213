package postgres

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"likewise/internal/like"
	"likewise/test/servers"
)

// follower is a node that looks at what others drained only when it is told to, and a
// feed of it.
type follower struct {
	*testing.T
	s      *shard
	others *Ledger
	fatal  error
	next   func() ([]like.Total, error, bool)
}

func newFollower(t *testing.T) *follower {
	url := servers.Database(t)
	f := &follower{T: t, others: openTest(t, hasty(url))}
	cfg := hasty(url)
	cfg.DrainInterval = time.Hour
	cfg.OnFatal = func(err error) { f.fatal = err }
	l := openTest(t, cfg)
	f.s = l.shards[0]
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // of the whole test
	t.Cleanup(cancel)
	next, stop := iter.Pull2(l.Feed(ctx))
	t.Cleanup(stop)
	f.next = next
	if batch, err, ok := next(); batch != nil || err != nil || !ok {
		t.Fatalf("the feed begins with %v, %v, %v", batch, err, ok)
	}
	return f
}

// drained lets somebody like an item through another node, which drains it.
func (f *follower) drained(item like.Item, want int64) {
	f.Helper()
	apply(f, f.others, like.Command{Item: item, User: userN(int(want)), Op: like.OpLike})
	totalIs(f, f.others, item, want)
}

func (f *follower) follow() {
	f.Helper()
	if err := f.s.follow(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// shows demands that the feed's next batch has the items.
func (f *follower) shows(items ...like.Item) {
	f.Helper()
	batch, err, _ := f.next()
	var got []like.Item
	for _, t := range batch {
		got = append(got, t.Item)
	}
	slices.SortFunc(got, func(a, b like.Item) int { return strings.Compare(itemText(a), itemText(b)) })
	if err != nil || !slices.Equal(got, items) {
		f.Fatalf("the feed shows %v, %v, want %v", got, err, items)
	}
}

// ends demands that the feed ends because something may be missing.
func (f *follower) ends() {
	f.Helper()
	if batch, err, _ := f.next(); batch != nil || !errors.Is(err, like.ErrOverloaded) {
		f.Errorf("the feed goes on with %v, %v", batch, err)
	}
}

// While a transaction runs for long, nothing is missed, and nothing is told again.
func TestJournalBesideALongTransaction(t *testing.T) {
	t.Parallel()
	f := newFollower(t)
	long := connect(t, f.others.cfg.URLs[0])
	for _, sql := range []string{"BEGIN", "SELECT pg_current_xact_id()"} {
		if _, err := long.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 5 {
		f.drained(postN(n), 1)
		f.follow()
		f.shows(postN(n))
	}
	if len(f.s.journal.seen) < 5 {
		t.Errorf("%d drains are remembered beside a long transaction", len(f.s.journal.seen))
	}
	if _, err := long.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	f.drained(postN(7), 1)
	f.drained(postN(8), 1)
	f.follow()
	f.shows(postN(7), postN(8))
	// Other tests have transactions under way in the same server.
	eventually(t, "drains are forgotten without a long transaction", func() bool {
		f.follow()
		return len(f.s.journal.seen) <= 2
	})
}

// A drain that commits behind later ones is not missed.
func TestJournalOfDrainsThatCommitLate(t *testing.T) {
	t.Parallel()
	f := newFollower(t)
	late := connect(t, f.others.cfg.URLs[0])
	for _, sql := range []string{"BEGIN", `INSERT INTO likewise.drains (last, items, counts, versions) VALUES (1, '{posts/late}', '{1}', '{1}')`} {
		if _, err := late.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	f.drained(postN(1), 1)
	f.follow()
	f.shows(postN(1))
	if _, err := late.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	f.follow()
	f.shows(post("late"))
}

// A node that could not look for long may have missed what is deleted by now.
func TestJournalMissed(t *testing.T) {
	t.Parallel()
	f := newFollower(t)
	f.drained(postN(1), 1)
	f.drained(postN(2), 1)
	f.s.journal.at -= like.Stamp((retention/2 + time.Second).Microseconds())
	execute(t, f.s, trimSQL, "0s")
	f.follow()
	f.ends()
}

// Behind a crash or a failover transactions may have the ids of others.
func TestJournalOfAnotherEra(t *testing.T) {
	t.Parallel()
	f := newFollower(t)
	f.drained(postN(1), 1)
	f.follow()
	f.shows(postN(1))
	execute(t, f.s, "DELETE FROM likewise.era")
	f.follow()
	f.ends()
}

// A database that was set back lacks what was seen of it.
func TestJournalGoesBack(t *testing.T) {
	t.Parallel()
	f := newFollower(t)
	f.drained(postN(1), 1)
	f.drained(postN(2), 1)
	f.follow()
	if f.fatal != nil {
		t.Fatalf("a sound database is said to be set back: %v", f.fatal)
	}
	execute(t, f.s, trimSQL, "0s")
	f.follow()
	if f.fatal != nil {
		t.Fatalf("a trimmed journal is said to be set back: %v", f.fatal)
	}
	f.others.Close() // it would see the same
	execute(t, f.s, "DELETE FROM likewise.drains")
	f.follow()
	if !errors.Is(f.fatal, like.ErrCorrupt) {
		t.Errorf("a database that was set back: %v", f.fatal)
	}
}

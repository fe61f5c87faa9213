package postgres

import (
	"errors"
	"testing"
	"time"

	"likewise/internal/like"
	"likewise/test/servers"
)

// TestCrashHidesWhatBecameOfATransaction loses a transaction in a crash, and lets
// others have its id and commit: that must not be taken for its own commit.
func TestCrashHidesWhatBecameOfATransaction(t *testing.T) {
	t.Parallel()
	db := servers.Postgres(t)
	cfg := testConfig(db.URL())
	cfg.DrainInterval = time.Minute // nothing else writes the log to disk
	l := openTest(t, cfg)
	s, item := l.shards[0], like.Item{Collection: "posts", ID: "1"}
	first := like.Command{Item: item, User: "first", Op: like.OpLike}
	if _, err := l.Apply(t.Context(), first); err != nil {
		t.Fatal(err)
	}

	lost := newCall([]like.Command{{Item: item, User: "lost", Op: like.OpLike}})
	conn, err := s.write.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.execute(t.Context(), conn, newStep(runsOf([]*call{lost}), 1), applySQL)
	if err != nil || o.tx.era == 0 {
		t.Fatalf("%+v, %v: no era was begun", o, err)
	}
	db.Kill9(t)
	discard(t.Context(), conn)
	db.Start(t)

	for id := uint64(0); id < o.tx.id; {
		if err := s.read.QueryRow(t.Context(), "SELECT pg_current_xact_id()::text::bigint").Scan(&id); err != nil {
			t.Log(err) // a connection that the crash has broken
		}
	}
	var status string
	if err := s.read.QueryRow(t.Context(), "SELECT pg_xact_status($1::bigint::text::xid8)", int64(o.tx.id)).Scan(&status); err != nil {
		t.Fatal(err)
	}
	t.Logf("the lost transaction is said to be %s", status)
	if err := s.resolve(t.Context(), o.tx, errors.New("no answer to COMMIT")); !errors.Is(err, errUnknown) {
		t.Errorf("resolved with %v, want %v", err, errUnknown)
	}
	states, err := l.Liked(t.Context(), "lost", []like.Item{item})
	if err != nil || states[0].Liked {
		t.Errorf("after the crash %+v, %v", states, err)
	}
}

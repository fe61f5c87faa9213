package pebble

import (
	"testing"
	"time"

	"likewise/internal/like"
)

func TestStats(t *testing.T) {
	l := openTest(t, testConfig(t, newCrashFS(), time.Now))
	cmd := like.Command{Item: like.Item{Collection: "posts", ID: "1"}, User: "ann", Op: like.OpLike}
	for range 2 { // the second changes nothing
		if _, err := l.Apply(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	s := l.Stats()
	if s.Commands != 2 || s.Changes != 1 || s.Commits < 1 || s.Refused != 0 {
		t.Errorf("counted %+v; want 2 commands and 1 change", s)
	}
	if s.QueueLength != 0 || s.QueueAge != 0 || s.StoreBytes == 0 || s.MemtableBytes == 0 {
		t.Errorf("state %+v; want an empty queue and a store of some size", s)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s != (Stats{}) {
		t.Errorf("after Close: %+v", s)
	}
}

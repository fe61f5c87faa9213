package redis

import "testing"

func newBreaker() *breaker { return &breaker{tripped: make(chan struct{}, 1)} }

func setOf(segments ...int) (s set) {
	for _, i := range segments {
		s.add(i)
	}
	return s
}

func TestBreaker(t *testing.T) {
	b := newBreaker()
	for range tolerated - 1 {
		b.report(setOf(1, 2), setOf(1))
	}
	b.report(setOf(1), 0) // luck came back
	for range tolerated - 1 {
		b.report(setOf(1, 2), setOf(1))
	}
	if b.open() != 0 || len(b.tripped) != 0 {
		t.Fatalf("open are %b before %d failures in a row", b.open(), tolerated)
	}
	b.report(setOf(1, 2), setOf(1))
	if b.open() != setOf(1) || len(b.tripped) != 1 {
		t.Fatalf("open are %b, want segment 1 only, and a signal", b.open())
	}
	b.report(setOf(1), 0)
	if b.open() != setOf(1) {
		t.Error("a late answer closed a segment")
	}
	b.report(setOf(1), setOf(1))
	<-b.tripped
	b.heal(setOf(1, 3))
	if b.open() != 0 {
		t.Error("a segment is open after it was healed")
	}
	b.report(setOf(1), setOf(1))
	if b.open() != setOf(1) || len(b.tripped) != 1 {
		t.Error("a segment on probation was not opened by one failure")
	}
	b.heal(setOf(1))
	b.report(setOf(1), 0)
	b.report(setOf(1), setOf(1))
	if b.open() != 0 {
		t.Error("a segment that answered is still on probation")
	}
	<-b.tripped
	b.trip(setOf(2))
	if b.open() != setOf(2) || len(b.tripped) != 1 {
		t.Errorf("open are %b, want segment 2 at once, and a signal", b.open())
	}
}

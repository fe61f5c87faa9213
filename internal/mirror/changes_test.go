package mirror

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func wantLag(t *testing.T, c *changes, now, seconds int) {
	t.Helper()
	if got := c.lag(at(now)); got != time.Duration(seconds)*time.Second {
		t.Errorf("at %d s the lag is %v, want %d s", now, got, seconds)
	}
}

// TestLag follows the oldest unwritten change through everything that may become of it.
func TestLag(t *testing.T) {
	c := newChanges(3)
	wantLag(t, c, 0, 0)
	c.add("a", at(0))
	c.add("b", at(1))
	c.add("a", at(2))
	wantLag(t, c, 3, 3)
	if ids := c.take(); len(ids) != 2 {
		t.Errorf("took %q", ids)
	}
	c.add("a", at(4)) // again, while it is written
	wantLag(t, c, 5, 5)
	c.settle([]string{"b"}) // a row of another transaction
	wantLag(t, c, 6, 6)
	if ids := c.take(); len(ids) != 2 {
		t.Errorf("took %q", ids)
	}
	c.settle(nil)
	wantLag(t, c, 7, 0)
	if ids := c.take(); ids != nil {
		t.Errorf("took %q", ids)
	}
}

// TestWhatIsLostIsSwept drops more than may be kept, and demands a sweep that began
// after the loss.
func TestWhatIsLostIsSwept(t *testing.T) {
	c := newChanges(3)
	c.askSweep()
	if !c.beginSweep(false) || c.beginSweep(false) {
		t.Fatal("one sweep was asked for")
	}
	c.add("a", at(0))
	c.take()
	for k := range 3 {
		c.add(fmt.Sprint(k), at(k+1))
	}
	c.settle(nil)
	if ids := c.take(); len(ids) != 0 {
		t.Errorf("%q are kept", ids)
	}
	wantLag(t, c, 10, 9)
	c.endSweep() // of the one that began before
	wantLag(t, c, 10, 9)
	if !c.beginSweep(false) {
		t.Fatal("no sweep begins")
	}
	wantLag(t, c, 10, 9)
	c.feedLost(at(11))
	c.askSweep()
	c.endSweep()
	wantLag(t, c, 12, 1)
	c.beginSweep(false)
	c.add("x", at(13))
	c.take()
	c.abandon()
	c.endSweep()
	wantLag(t, c, 14, 1)
	if !c.beginSweep(false) {
		t.Fatal("no sweep begins")
	}
	c.askSweep() // the one under way is broken off
	if !c.beginSweep(false) {
		t.Fatal("no sweep begins")
	}
	wantLag(t, c, 14, 1)
	c.endSweep()
	wantLag(t, c, 14, 0)
	if c.beginSweep(false) || !c.beginSweep(true) {
		t.Error("only a sweep that is due begins")
	}
}

// TestPutBack keeps within the limit what could not be written.
func TestPutBack(t *testing.T) {
	c := newChanges(2)
	c.add("a", at(0))
	c.add("b", at(0))
	ids := c.take()
	slices.Sort(ids)
	c.settle(ids)
	if again := c.take(); len(again) != 2 {
		t.Errorf("%q are kept", again)
	}
}

package mirror

import (
	"strings"
	"sync"
	"time"
)

// changes is what is known to be unwritten in one column: the ids whose totals
// changed, and since when changes may have been lost that only a sweep finds. It is
// shared by the feed, which adds, and the column's worker, which takes.
type changes struct {
	max int

	mu      sync.Mutex
	ids     map[string]struct{}
	oldest  time.Time // when the first of ids was added
	taken   int       // ids that are being written
	takenAt time.Time // oldest of those, zero while nothing is written
	lost    time.Time // since when changes may be lost, zero = none are
	asked   bool      // whether a sweep is to begin
	covered time.Time // what lost was when the sweep under way began
}

func newChanges(most int) *changes { return &changes{max: most, ids: map[string]struct{}{}} }

// add notes that the total of an id changed. It never waits for the database.
func (c *changes) add(id string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.ids[id]; ok {
		return
	}
	c.keep(strings.Clone(id), now) // a part of a request keeps the whole request
}

func (c *changes) keep(id string, at time.Time) {
	c.oldest = earlier(c.oldest, at)
	c.ids[id] = struct{}{}
	if len(c.ids)+c.taken > c.max {
		c.lose(c.oldest)
		c.asked = true
		clear(c.ids)
		c.oldest = time.Time{}
	}
}

func (c *changes) lose(since time.Time) { c.lost = earlier(c.lost, since) }

// feedLost notes that changes from a moment on may be missing.
func (c *changes) feedLost(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose(since)
}

// askSweep has the worker begin a sweep, after the one under way if there is one.
func (c *changes) askSweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = true
}

// take hands the changed ids to the caller, who owns them and tells by settle or
// abandon what became of them.
func (c *changes) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ids) == 0 {
		return nil
	}
	ids := make([]string, 0, len(c.ids))
	for id := range c.ids {
		ids = append(ids, id)
	}
	c.ids = map[string]struct{}{} // a map keeps the room of the most that it ever held
	c.taken, c.takenAt, c.oldest = len(ids), c.oldest, time.Time{}
	return ids
}

// settle ends what take began; left are ids that are still to be written.
func (c *changes) settle(left []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.takenAt
	c.taken, c.takenAt = 0, time.Time{}
	for _, id := range left {
		c.keep(id, at)
	}
}

// abandon ends what take began and leaves all of it to a sweep.
func (c *changes) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose(c.takenAt)
	c.asked = true
	c.taken, c.takenAt = 0, time.Time{}
}

// beginSweep reports whether a sweep is to begin, because one was asked for or is
// due, and takes what may be lost up to now as found by it.
func (c *changes) beginSweep(due bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked {
		c.covered, c.lost = earlier(c.covered, c.lost), time.Time{} // one that was broken off covered nothing
	}
	begin := c.asked || due
	c.asked = false
	return begin
}

func (c *changes) endSweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.covered = time.Time{}
}

// lag is the age of the oldest change that is known to be unwritten.
func (c *changes) lag(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest := earlier(earlier(c.oldest, c.takenAt), earlier(c.lost, c.covered))
	if oldest.IsZero() {
		return 0
	}
	return now.Sub(oldest)
}

// earlier is the earlier of two moments, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

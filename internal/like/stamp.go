package like

import "time"

// Stamp is a time in microseconds since 1970 UTC. Within one ledger the stamps
// of accepted commands only grow, so they order commands by acceptance.
type Stamp int64

// StampOf returns the stamp of t, cut to the microsecond.
func StampOf(t time.Time) Stamp { return Stamp(t.UnixMicro()) }

// Time returns s as a UTC time.
func (s Stamp) Time() time.Time { return time.UnixMicro(int64(s)).UTC() }

// Clock hands out growing stamps from a wall clock that may step back or stand
// still. It is not safe for concurrent use: its owner serialises acceptance.
type Clock struct {
	now  func() time.Time
	last Stamp
}

// NewClock returns a clock whose stamps are all larger than last, the newest
// stamp that its owner made durable.
func NewClock(now func() time.Time, last Stamp) *Clock {
	return &Clock{now: now, last: last}
}

// Next returns max(now, last+1).
func (c *Clock) Next() Stamp {
	c.last = max(StampOf(c.now()), c.last+1)
	return c.last
}

// Last returns the largest stamp handed out so far, or the one it began with.
func (c *Clock) Last() Stamp { return c.last }

// Now returns the wall clock's time as a stamp, without handing it out.
func (c *Clock) Now() Stamp { return StampOf(c.now()) }

package redis

import "sync/atomic"

// tolerated is how many failures in a row are taken for bad luck.
const tolerated = 3

// breaker says which segments are worth asking. In a Redis Cluster one node may be
// gone while the others answer. Its whole state is the failures in a row of each
// segment; a segment with too many is open: it is not asked until a probe heals it.
// The zero value lets everything through.
type breaker struct {
	failures [segments]atomic.Int32
	tripped  chan struct{} // holds one token when a segment has opened
}

func (b *breaker) isOpen(segment int) bool { return b.failures[segment].Load() >= tolerated }

// open returns the open segments.
func (b *breaker) open() (open set) {
	for i := range segments {
		if b.isOpen(i) {
			open.add(i)
		}
	}
	return open
}

// report takes note of what came of asking some segments. Answers do not close an
// open segment: they may have been long on their way.
func (b *breaker) report(asked, failed set) {
	for i := range segments {
		failures := &b.failures[i]
		switch {
		case failed.has(i):
			if failures.Add(1) == tolerated {
				b.signal()
			}
		case asked.has(i):
			if n := failures.Load(); n != 0 && n < tolerated {
				failures.CompareAndSwap(n, 0)
			}
		}
	}
}

// trip opens segments at once.
func (b *breaker) trip(unfit set) {
	for i := range segments {
		if unfit.has(i) && b.failures[i].Swap(tolerated) < tolerated {
			b.signal()
		}
	}
}

func (b *breaker) signal() {
	select {
	case b.tripped <- struct{}{}:
	default:
	}
}

// heal closes open segments, each on probation: the next failure opens it again.
func (b *breaker) heal(healed set) {
	for i := range segments {
		if healed.has(i) && b.isOpen(i) {
			b.failures[i].Store(tolerated - 1)
		}
	}
}

package limit

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// shards spreads the keys over independent locks.
const shards = 16

// Local is a [Limiter] in the memory of this process. Its methods never fail and do
// not look at their context.
type Local struct {
	bucket Bucket
	off    bool
	start  time.Time // carries the monotonic reading that all times are measured from
	seed   maphash.Seed
	shards [shards]shard
}

// shard keeps the buckets of its keys in two generations. A key that is used moves
// to the young one; when a window has passed, the old one is dropped as a whole:
// whatever is in it was not used for a window, so its bucket is full.
type shard struct {
	mu     sync.Mutex
	young  map[string]time.Duration
	old    map[string]time.Duration
	turned time.Duration // when young became young
	limit  int
	spare  time.Duration // bucket of all keys that find no room
}

// NewLocal returns a limiter for cfg.
func NewLocal(cfg Config) (*Local, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Rate == 0 {
		return &Local{off: true}, nil
	}
	l := &Local{bucket: NewBucket(cfg, 1), start: time.Now(), seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].limit = cfg.MaxKeys / shards
		l.shards[i].young = make(map[string]time.Duration)
	}
	return l, nil
}

// Allow implements [Limiter].
func (l *Local) Allow(_ context.Context, key string) (Decision, error) {
	if l.off {
		return Decision{OK: true}, nil
	}
	s := &l.shards[maphash.String(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(l.start)
	s.turn(now, l.bucket.Window())
	return s.take(l.bucket, key, now), nil
}

// Peek implements [Limiter].
func (l *Local) Peek(_ context.Context, key string) (Decision, error) {
	if l.off {
		return Decision{OK: true}, nil
	}
	s := &l.shards[maphash.String(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	full, known := s.young[key]
	if !known {
		full, known = s.old[key]
	}
	if !known && len(s.young)+len(s.old) >= s.limit {
		full = s.spare
	}
	_, d := l.bucket.Take(full, time.Since(l.start))
	return d, nil
}

func (s *shard) turn(now, window time.Duration) {
	age := now - s.turned
	if age < window {
		return
	}
	s.old, s.young, s.turned = s.young, make(map[string]time.Duration, len(s.young)), now
	if age >= 2*window {
		s.old = nil
	}
}

func (s *shard) take(b Bucket, key string, now time.Duration) Decision {
	full, known := s.young[key]
	if !known {
		if full, known = s.old[key]; known {
			delete(s.old, key)
		}
	}
	if !known && len(s.young)+len(s.old) >= s.limit {
		var d Decision
		s.spare, d = b.Take(s.spare, now)
		return d
	}
	full, d := b.Take(full, now)
	s.young[key] = full
	return d
}

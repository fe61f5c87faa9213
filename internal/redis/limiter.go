package redis

import (
	"context"
	"strconv"
	"time"

	"likewise/internal/limit"
)

// limitFormat is the number of the format of a bucket's key and value.
const limitFormat = "limit:1"

// Limiter is a [limit.Limiter] whose buckets are in Redis, so that a key has one
// limit on all nodes. While Redis does not answer the buckets of this process
// decide, and N nodes allow up to N times the limit. An answer that is late may have
// taken a token; the local bucket decides all the same. Its methods never fail.
type Limiter struct {
	client *Client
	name   string
	local  *limit.Local
	bucket limit.Bucket
	off    bool
	args   [2][]string // of the script: to look, to take
}

// NewLimiter returns a limiter over what the nodes share. Limiters of one name have
// the same buckets.
func NewLimiter(c *Client, name string, cfg limit.Config) (*Limiter, error) {
	local, err := limit.NewLocal(cfg)
	if err != nil {
		return nil, err
	}
	l := &Limiter{client: c, name: name, local: local, off: cfg.Rate == 0}
	if l.off {
		return l, nil
	}
	// The clock of Redis has microseconds.
	l.bucket = limit.NewBucket(cfg, time.Microsecond)
	token := strconv.FormatInt(l.bucket.Token().Microseconds(), 10)
	window := strconv.FormatInt(l.bucket.Window().Microseconds(), 10)
	l.args = [2][]string{{token, window, "0"}, {token, window, "1"}}
	return l, nil
}

// Allow implements [limit.Limiter].
func (l *Limiter) Allow(ctx context.Context, key string) (limit.Decision, error) {
	if d, ok := l.ask(ctx, key, l.args[1]); ok {
		return d, nil
	}
	return l.local.Allow(ctx, key)
}

// Peek implements [limit.Limiter].
func (l *Limiter) Peek(ctx context.Context, key string) (limit.Decision, error) {
	if d, ok := l.ask(ctx, key, l.args[0]); ok {
		return d, nil
	}
	return l.local.Peek(ctx, key)
}

func (l *Limiter) ask(ctx context.Context, name string, args []string) (d limit.Decision, ok bool) {
	if l.off {
		return d, false
	}
	c := l.client
	key := c.key(limitFormat, l.name+":{"+name+"}")
	s, open := c.reach()
	if s == nil || open.has(s.segment(key)) {
		c.metrics.limit.skipped.Inc()
		return d, false
	}
	segment := s.segment(key)
	var asked set
	asked.add(segment)
	missing, ok := do(ctx, c, &c.metrics.limit, c.cfg.Timeout, asked, func(ctx context.Context) (int64, verdict) {
		results := takeScript.exec(ctx, s, run{key, args})
		n, err := results[0].AsInt64()
		if err != nil {
			n = -1
		}
		return n, judge(results, []int{segment})
	})
	if !ok || missing < 0 {
		return d, false
	}
	_, d = l.bucket.Take(time.Duration(missing)*time.Microsecond, 0)
	return d, true
}

package limit

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"likewise/internal/like"
)

// Limiter takes one token from the bucket of a key, if it has one. An error means
// that the limiter cannot tell, not that the limit is reached; the caller decides
// what to do without an answer. Safe for concurrent use.
type Limiter interface {
	Allow(ctx context.Context, key string) (Decision, error)
	// Peek returns what Allow would, and takes nothing.
	Peek(ctx context.Context, key string) (Decision, error)
}

// Decision is the answer about one request.
type Decision struct {
	OK        bool
	Limit     int // size of the bucket; 0 without a limit
	Window    int // seconds in which an empty bucket fills up, rounded up
	Remaining int // tokens left
	// RetryAfter is 0 with OK; otherwise whole seconds, rounded up and at least 1,
	// after which a request is accepted if no other comes before it.
	RetryAfter int
	Reset      int // seconds until the bucket is full again, rounded up
}

// WriteHeader sets RateLimit-Policy and RateLimit
// (draft-ietf-httpapi-ratelimit-headers-10) under the name of a policy ("user",
// "reads", "address"), and Retry-After for a refused request. Without a limit it sets none.
func (d Decision) WriteHeader(h http.Header, policy string) {
	if d.Limit == 0 {
		return
	}
	name := strconv.Quote(policy)
	h.Set("RateLimit-Policy", name+";q="+strconv.Itoa(d.Limit)+";w="+strconv.Itoa(d.Window))
	h.Set("RateLimit", name+";r="+strconv.Itoa(d.Remaining)+";t="+strconv.Itoa(d.Reset))
	if !d.OK {
		h.Set("Retry-After", strconv.Itoa(d.RetryAfter))
	}
}

// Config is one limit for one sort of key.
type Config struct {
	// Rate is tokens per second, up to a million. Zero switches the limit off.
	Rate float64
	// Burst is the size of a bucket, from 1 to a million.
	Burst int
	// MaxKeys bounds the buckets kept in memory, about 100 bytes each. Keys
	// beyond it share a few spare buckets until idle ones are forgotten.
	MaxKeys int
}

// DefaultUser returns the limit of one user: 5 a second, bursts of 10.
func DefaultUser() Config { return Config{Rate: 5, Burst: 10, MaxKeys: 1 << 20} }

// DefaultAddress returns the limit of one address without a token: 200 a second,
// bursts of 400, because many people may share it.
func DefaultAddress() Config { return Config{Rate: 200, Burst: 400, MaxKeys: 1 << 18} }

const (
	maxRate   = 1e6
	maxBurst  = 1_000_000
	maxWindow = 24 * time.Hour
)

// Validate reports, as [like.ErrInvalid], why the settings cannot work.
func (c Config) Validate() error {
	switch {
	case c.Rate == 0:
		return nil
	case !(c.Rate > 0 && c.Rate <= maxRate):
		return fmt.Errorf("%w: rate limit must be from 0 (off) to %.0f a second", like.ErrInvalid, float64(maxRate))
	case c.Burst < 1 || c.Burst > maxBurst:
		return fmt.Errorf("%w: rate limit burst must be from 1 to %d", like.ErrInvalid, maxBurst)
	case float64(c.Burst)/c.Rate > maxWindow.Seconds():
		return fmt.Errorf("%w: rate limit burst takes longer than %s to refill", like.ErrInvalid, maxWindow)
	case c.MaxKeys < shards:
		return fmt.Errorf("%w: rate limit needs at least %d keys", like.ErrInvalid, shards)
	}
	return nil
}

// Bucket is the arithmetic of one limit (GCRA). Times are measured from an
// arbitrary start; where a bucket is kept is its owner's business.
type Bucket struct {
	token time.Duration // time in which one token comes back
	burst int
}

// NewBucket returns the bucket of a limit that is not off. The time of a token is
// rounded to whole units, at least one, for an owner whose clock counts those.
func NewBucket(c Config, unit time.Duration) Bucket {
	token := time.Duration(float64(time.Second) / c.Rate)
	return Bucket{token: max(token.Round(unit), unit), burst: c.Burst}
}

// Token is the time in which one token comes back.
func (b Bucket) Token() time.Duration { return b.token }

// Window is the time in which an empty bucket fills up.
func (b Bucket) Window() time.Duration { return time.Duration(b.burst) * b.token }

// Take decides about one request at now for a bucket that is full again at full,
// and returns the new time of that. A refused request costs nothing.
func (b Bucket) Take(full, now time.Duration) (time.Duration, Decision) {
	full = max(full, now)
	d := Decision{Limit: b.burst, Window: seconds(b.Window())}
	if wait := full + b.token - now - b.Window(); wait > 0 {
		d.RetryAfter = seconds(wait)
	} else {
		d.OK = true
		full += b.token
	}
	missing := full - now
	d.Remaining = int((b.Window() - missing) / b.token)
	d.Reset = seconds(missing)
	return full, d
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

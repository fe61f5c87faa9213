package live

import (
	"fmt"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Config is the settings of a hub.
type Config struct {
	// Interval between two flushes: how often a watched number can move.
	Interval time.Duration
	// Heartbeat is the time between two signs of life on a stream. Those of
	// different streams are spread over it.
	Heartbeat time.Duration
	// WriteTimeout is the time that a client has to take one frame.
	WriteTimeout time.Duration
	// LoadTimeout bounds one read of totals.
	LoadTimeout time.Duration
	// Recheck is the time after which every watched item is read again, whatever
	// the feed said; 0 is never.
	Recheck time.Duration
	// Linger is how long an item that nobody watches any more is kept up to date
	// for those who come back, and IdleItems how many such items are kept.
	Linger    time.Duration
	IdleItems int
	// Writers is how many goroutines write the frames of one flush.
	Writers int
	// SendBuffer is the size of a stream's socket buffer in bytes; 0 leaves it to
	// the system. It bounds what the kernel holds for a client that does not read.
	SendBuffer int

	MaxItems   int // items of one stream, at most [ledger.MaxItems]
	MaxStreams int // streams of this hub
	// MaxPerUser bounds the streams of one user, MaxPerAddress those without a
	// user from one address. 0 is no bound.
	MaxPerUser    int
	MaxPerAddress int

	// Retry to Retry+RetrySpread is the time after which a client that lost its
	// stream comes back, and up to DrainSpread more when the server shuts down.
	Retry       time.Duration
	RetrySpread time.Duration
	DrainSpread time.Duration

	// MessageBytes is the size of the largest message of a WebSocket client,
	// MessageRate how many it may send a second, MessageBurst how many at once.
	MessageBytes int64
	MessageRate  float64
	MessageBurst int
	// Origins are the origins whose pages may open a WebSocket besides the
	// server's own; "*" stands for every origin.
	Origins []string
}

// DefaultConfig returns the settings of a node that nobody tuned.
func DefaultConfig() Config {
	return Config{
		Interval:      time.Second,
		Heartbeat:     15 * time.Second,
		WriteTimeout:  5 * time.Second,
		LoadTimeout:   time.Second,
		Recheck:       30 * time.Second,
		Linger:        time.Minute,
		IdleItems:     100_000,
		Writers:       2,
		SendBuffer:    32 << 10,
		MaxItems:      50,
		MaxStreams:    15_000,
		MaxPerUser:    5,
		MaxPerAddress: 20,
		Retry:         time.Second,
		RetrySpread:   2 * time.Second,
		DrainSpread:   10 * time.Second,
		MessageBytes:  16 << 10,
		MessageRate:   5,
		MessageBurst:  20,
	}
}

// Validate reports, as [like.ErrInvalid], which setting cannot work.
func (c Config) Validate() error {
	switch {
	case c.Interval <= 0 || c.Heartbeat <= 0 || c.WriteTimeout <= 0 || c.LoadTimeout <= 0 || c.Retry <= 0:
		return fmt.Errorf("%w: live: interval, heartbeat, retry and timeouts must be positive", like.ErrInvalid)
	case c.Recheck < 0 || c.Linger < 0 || c.RetrySpread < 0 || c.DrainSpread < 0:
		return fmt.Errorf("%w: live: a time is negative", like.ErrInvalid)
	case c.MaxItems < 1 || c.MaxItems > ledger.MaxItems:
		return fmt.Errorf("%w: live: items of a stream must be from 1 to %d", like.ErrInvalid, ledger.MaxItems)
	case c.MaxStreams < 1 || c.Writers < 1:
		return fmt.Errorf("%w: live: streams and writers must be at least 1", like.ErrInvalid)
	case c.MaxPerUser < 0 || c.MaxPerAddress < 0 || c.IdleItems < 0 || c.SendBuffer < 0:
		return fmt.Errorf("%w: live: a limit is negative", like.ErrInvalid)
	case c.MessageBytes < 1 || !(c.MessageRate > 0) || c.MessageBurst < 1:
		return fmt.Errorf("%w: live: limits of messages must be positive", like.ErrInvalid)
	}
	return nil
}

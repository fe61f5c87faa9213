package httpapi

import (
	"fmt"
	"net/netip"
	"time"

	"likewise/internal/like"
)

// What the API's contract promises at most. Settings may lower these limits but
// not raise them.
const (
	maxCountsItems   = 100
	maxFriends       = 1000
	maxPage          = 100
	maxBatchCommands = 1000
	maxLookups       = maxCountsItems * maxFriends
)

// Config is the settings of the public API.
type Config struct {
	// AnonymousReads lets requests without a token read.
	AnonymousReads bool
	// CORSOrigins are the origins whose pages may call the API, as browsers send
	// them; "*" stands for every origin. Credentials are never allowed.
	CORSOrigins []string
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix

	MaxURLBytes  int           // longest URL
	MaxBodyBytes int64         // largest body
	BodyTimeout  time.Duration // for a body to arrive
	// RequestTimeout bounds the work on one request, from its headers on.
	RequestTimeout time.Duration

	CountsMaxItems int // items of one counts request, at most 100
	FriendsMax     int // users of one friends question, at most 1,000
	// FriendsMaxLookups bounds the items of one friends question times its users, at
	// most 100,000: each is a fact that is looked up.
	FriendsMaxLookups int
	PageMax           int // longest page of a list, at most 100
	PageDefault       int // page of a list when the request names no limit
	BatchMaxCommands  int // commands of one batch, at most 1,000
}

// DefaultConfig returns the settings of a node that nobody tuned.
func DefaultConfig() Config {
	return Config{
		AnonymousReads:    true,
		MaxURLBytes:       8 << 10,
		MaxBodyBytes:      1 << 20,
		BodyTimeout:       10 * time.Second,
		RequestTimeout:    10 * time.Second,
		CountsMaxItems:    maxCountsItems,
		FriendsMax:        maxFriends,
		FriendsMaxLookups: 20_000,
		PageMax:           maxPage,
		PageDefault:       50,
		BatchMaxCommands:  maxBatchCommands,
	}
}

// Validate reports, as [like.ErrInvalid], which setting cannot work.
func (c Config) Validate() error {
	for _, limit := range []struct {
		name       string
		value, max int
	}{
		{"items of a counts request", c.CountsMaxItems, maxCountsItems},
		{"users of a friends question", c.FriendsMax, maxFriends},
		{"lookups of a friends question", c.FriendsMaxLookups, maxLookups},
		{"rows of a page", c.PageMax, maxPage},
		{"rows of a default page", c.PageDefault, maxPage},
		{"commands of a batch", c.BatchMaxCommands, maxBatchCommands},
	} {
		if limit.value < 1 || limit.value > limit.max {
			return fmt.Errorf("%w: http: %s must be from 1 to %d", like.ErrInvalid, limit.name, limit.max)
		}
	}
	if c.MaxURLBytes < 1 || c.MaxBodyBytes < 1 || c.BodyTimeout <= 0 || c.RequestTimeout <= 0 {
		return fmt.Errorf("%w: http: sizes and timeouts must be positive", like.ErrInvalid)
	}
	return nil
}

package auth

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"likewise/internal/like"
)

const (
	// MinSecretBytes is the shortest secret that HS256 may use (RFC 7518, 3.2).
	MinSecretBytes = 32
	// MaxTokenBytes is the longest token that is looked at.
	MaxTokenBytes = 8 << 10

	maxLeeway = time.Minute
)

// Config says which tokens are accepted. With both Secret and JWKS, tokens of
// either are: the algorithms are disjoint, so neither key can stand in for the other.
type Config struct {
	// Secret is the HS256 key, at least MinSecretBytes. The caller must not change it.
	Secret []byte
	// JWKS is the path or URL of a JSON Web Key Set. A URL must be https, except
	// that http is accepted to a loopback host or with AllowHTTP.
	JWKS      string
	AllowHTTP bool
	// Issuer and Audience, where not empty, must be the token's iss and among its aud.
	Issuer   string
	Audience string
	// Leeway is the clock difference forgiven in exp, nbf and iat, at most a minute.
	Leeway time.Duration
	// Refresh is the time between two readings of JWKS, from a minute to a day.
	Refresh time.Duration
	// MaxAge is how long a key set counts without a successful reading of JWKS, at
	// least twice Refresh; 0 is for ever. Its tokens are not accepted after that,
	// and Ready warns in the last tenth.
	MaxAge time.Duration
	// CacheTokens bounds the verified tokens remembered, about 300 bytes each.
	// Zero remembers none.
	CacheTokens int
}

// DefaultConfig returns the settings without any key, which Validate refuses:
// the caller adds a secret, a key set, or both.
func DefaultConfig() Config {
	return Config{
		Leeway:      30 * time.Second,
		Refresh:     5 * time.Minute,
		MaxAge:      24 * time.Hour,
		CacheTokens: 65_536,
	}
}

// Validate reports, as [like.ErrInvalid], why the settings cannot work.
func (c Config) Validate() error {
	switch {
	case len(c.Secret) == 0 && c.JWKS == "":
		return fmt.Errorf("%w: no token key: set a secret or a JWKS", like.ErrInvalid)
	case len(c.Secret) > 0 && len(c.Secret) < MinSecretBytes:
		return fmt.Errorf("%w: token secret is shorter than %d bytes", like.ErrInvalid, MinSecretBytes)
	case c.Leeway < 0 || c.Leeway > maxLeeway:
		return fmt.Errorf("%w: token leeway must be from 0s to %s", like.ErrInvalid, maxLeeway)
	case c.Refresh < refreshGap || c.Refresh > 24*time.Hour:
		return fmt.Errorf("%w: JWKS refresh must be from %s to 24h", like.ErrInvalid, refreshGap)
	case c.MaxAge != 0 && c.MaxAge < 2*c.Refresh:
		return fmt.Errorf("%w: JWKS maximum age must be 0 or at least twice the refresh", like.ErrInvalid)
	case c.CacheTokens < 0:
		return fmt.Errorf("%w: number of cached tokens is negative", like.ErrInvalid)
	}
	return c.validateURL()
}

func (c Config) validateURL() error {
	if !isURL(c.JWKS) {
		return nil
	}
	u, err := url.Parse(c.JWKS)
	if err != nil || u.Hostname() == "" {
		return fmt.Errorf("%w: JWKS is not a usable URL", like.ErrInvalid)
	}
	if u.Scheme == "https" || u.Scheme == "http" && (c.AllowHTTP || isLoopback(u.Hostname())) {
		return nil
	}
	return fmt.Errorf("%w: JWKS URL must be https", like.ErrInvalid)
}

func isURL(s string) bool { return strings.Contains(s, "://") }

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

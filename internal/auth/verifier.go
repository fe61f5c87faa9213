package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/maypok86/otter/v2"

	"likewise/internal/like"
)

const (
	maxKidBytes = 128
	// maxDate is the last second of the year 9999; dates beyond it overflow on
	// conversion and would turn into other dates.
	maxDate = 253_402_300_799
)

// Verifier turns tokens into identities. It is safe for concurrent use. With a
// key set, its owner runs Run.
type Verifier struct {
	secret []byte
	leeway time.Duration
	parser *jwt.Parser
	ring   *keyring // nil without a key set
	cache  *otter.Cache[[sha256.Size]byte, verified]
	log    *slog.Logger
}

// verified is what is remembered of an accepted token.
type verified struct {
	identity Identity
	until    time.Time
	keys     *keySet // the set its key was in; nil for the secret
}

// New returns a verifier and starts nothing. A key set in a file is read here, so
// that a mistake in it stops the start; one behind a URL is first read by Run.
func New(cfg Config, log *slog.Logger) (*Verifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	v := &Verifier{
		secret: cfg.Secret,
		leeway: cfg.Leeway,
		log:    log.With(slog.String("component", "auth")),
	}
	var methods []string
	if len(cfg.Secret) > 0 {
		methods = append(methods, algHS256)
	}
	if cfg.JWKS != "" {
		methods = append(methods, algRS256, algES256, algEdDSA)
		ring, err := newKeyring(cfg, v.log)
		if err != nil {
			return nil, err
		}
		v.ring = ring
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(methods),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithLeeway(cfg.Leeway),
		jwt.WithStrictDecoding(),
		jwt.WithIssuer(cfg.Issuer),
	}
	if cfg.Audience != "" {
		options = append(options, jwt.WithAudience(cfg.Audience))
	}
	v.parser = jwt.NewParser(options...)
	if cfg.CacheTokens > 0 {
		cache, err := otter.New(&otter.Options[[sha256.Size]byte, verified]{
			MaximumSize: cfg.CacheTokens,
			// Upkeep runs on the caller, so the cache has no goroutine to own.
			Executor: func(fn func()) { fn() },
		})
		if err != nil {
			return nil, fmt.Errorf("create token cache: %w", err)
		}
		v.cache = cache
	}
	return v, nil
}

// Run keeps the key set fresh until ctx is done and returns nil after its last
// request has ended. Without a key set there is nothing to do and it returns at once.
func (v *Verifier) Run(ctx context.Context) error {
	if v.ring != nil {
		v.ring.run(ctx)
	}
	return nil
}

// Ready reports, as [like.ErrUnavailable], that the key set was never loaded, or
// that nine tenths of its maximum age have passed since it was last read.
func (v *Verifier) Ready() error {
	if v.ring == nil {
		return nil
	}
	return v.ring.usable(v.ring.age / 10 * 9)
}

// Verify returns the identity that a token proves. Its error is
// [ErrUnauthenticated] and nothing more for any token that is not accepted, or
// wraps [like.ErrUnavailable] when the token's key set was never loaded or is too
// old. A token
// counts until exp plus the leeway, remembered or not.
//
// A token that names an unknown key waits for a refresh when one is due or under
// way, but no longer than a tenth of a second or ctx.
func (v *Verifier) Verify(ctx context.Context, token string) (Identity, error) {
	if len(token) > MaxTokenBytes {
		return v.refuse(ctx, errors.New("token is too long"))
	}
	if known, ok := v.Known(token); ok {
		return known, nil
	}
	fresh, err := v.check(ctx, token)
	if err != nil {
		return v.refuse(ctx, err)
	}
	if v.cache != nil {
		v.cache.Set(sha256.Sum256([]byte(token)), fresh)
	}
	return fresh.identity, nil
}

// Known returns the identity of a token that Verify accepted before and still
// would, if that is remembered. It costs a hash where Verify may cost a signature.
func (v *Verifier) Known(token string) (Identity, bool) {
	if v.cache == nil {
		return Identity{}, false
	}
	known, ok := v.cache.GetIfPresent(sha256.Sum256([]byte(token)))
	if !ok || !v.holds(known) {
		return Identity{}, false
	}
	return known.identity, true
}

func (v *Verifier) holds(known verified) bool {
	return time.Now().Before(known.until) &&
		(known.keys == nil || known.keys == v.ring.keys.Load() && v.ring.usable(v.ring.age) == nil)
}

func (v *Verifier) refuse(ctx context.Context, reason error) (Identity, error) {
	v.log.LogAttrs(ctx, slog.LevelDebug, "token refused", slog.Any("reason", reason))
	for _, ours := range []error{errNoKeys, errOldKeys} {
		if errors.Is(reason, ours) {
			return Identity{}, ours
		}
	}
	return Identity{}, ErrUnauthenticated
}

func (v *Verifier) check(ctx context.Context, token string) (verified, error) {
	// The base64 decoder skips line breaks, which would give a token two spellings.
	if strings.ContainsAny(token, "\r\n") {
		return verified{}, errors.New("line break in token")
	}
	var result verified
	// Claims are a map because decoding into a struct would ignore the case of names.
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		kid, err := checkHeader(t.Header)
		if err != nil {
			return nil, err
		}
		if t.Method.Alg() == algHS256 {
			return v.secret, nil
		}
		key, set, err := v.ring.lookup(ctx, keyID{alg: t.Method.Alg(), kid: kid})
		result.keys = set
		return key, err
	})
	if err != nil {
		return verified{}, err
	}
	exp, err := checkDates(claims)
	if err != nil {
		return verified{}, err
	}
	result.until = exp.Add(v.leeway)
	result.identity, err = identityOf(claims)
	return result, err
}

// checkHeader returns the key id. It refuses extensions that must be understood
// and tokens made for another purpose. Places to find a key (jku, x5u, jwk, x5c)
// are ignored.
func checkHeader(header map[string]any) (kid string, err error) {
	if _, ok := header["crit"]; ok {
		return "", errors.New("header has crit")
	}
	if _, ok := header["b64"]; ok {
		return "", errors.New("header has b64")
	}
	if typ, ok := header["typ"]; ok {
		text, _ := typ.(string)
		switch strings.TrimPrefix(strings.ToLower(text), "application/") {
		case "jwt", "at+jwt":
		default:
			return "", errors.New("header has a foreign typ")
		}
	}
	if value, ok := header["kid"]; ok {
		if kid, ok = value.(string); !ok || len(kid) > maxKidBytes {
			return "", errors.New("header has an unusable kid")
		}
	}
	return kid, nil
}

func checkDates(claims jwt.MapClaims) (exp time.Time, err error) {
	for _, name := range [...]string{"exp", "nbf", "iat"} {
		if seconds, ok := claims[name].(float64); ok && (seconds < 0 || seconds > maxDate) {
			return exp, fmt.Errorf("%s is out of range", name)
		}
	}
	date, err := claims.GetExpirationTime()
	if err != nil {
		return exp, err
	}
	return date.Time, nil
}

func identityOf(claims jwt.MapClaims) (Identity, error) {
	sub, err := claims.GetSubject()
	if err != nil {
		return Identity{}, err
	}
	user := like.User(sub)
	if err := user.Validate(); err != nil {
		return Identity{}, err
	}
	var scopes []string
	if value, ok := claims["scope"]; ok {
		text, ok := value.(string)
		if !ok {
			return Identity{}, errors.New("scope is not a string")
		}
		scopes = strings.Fields(text)
	}
	return Identity{User: user, Scopes: scopes}, nil
}

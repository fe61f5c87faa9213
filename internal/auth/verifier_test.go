package auth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"likewise/internal/like"
)

func TestVerifyAccepts(t *testing.T) {
	cfg := testConfig()
	cfg.JWKS = writeFile(t, allKeys())
	v := newVerifier(t, cfg)
	claims := func(change func(jwt.MapClaims)) jwt.MapClaims {
		c := goodClaims()
		change(c)
		return c
	}
	plain := goodClaims()
	for _, tt := range []struct {
		name  string
		token string
		want  Identity
	}{
		{"HS256", sign(jwt.SigningMethodHS256, testSecret, plain, nil), Identity{User: "u1"}},
		{"HS256 with kid", sign(jwt.SigningMethodHS256, testSecret, plain, withKid("any")), Identity{User: "u1"}},
		{"RS256", sign(jwt.SigningMethodRS256, rsaKey(), plain, withKid("r")), Identity{User: "u1"}},
		{"ES256", sign(jwt.SigningMethodES256, ecKey(), plain, withKid("e")), Identity{User: "u1"}},
		{"EdDSA", sign(jwt.SigningMethodEdDSA, edKey(), plain, withKid("d")), Identity{User: "u1"}},
		{"no typ", sign(jwt.SigningMethodHS256, testSecret, plain, func(h map[string]any) { delete(h, "typ") }), Identity{User: "u1"}},
		{"typ at+jwt", sign(jwt.SigningMethodHS256, testSecret, plain, func(h map[string]any) { h["typ"] = "application/AT+jwt" }), Identity{User: "u1"}},
		{"key in header is ignored", sign(jwt.SigningMethodES256, ecKey(), plain, func(h map[string]any) {
			h["kid"], h["jku"], h["x5u"], h["jwk"] = "e", "http://127.0.0.1:1/", "http://127.0.0.1:1/", jwk(edKey().Public(), nil)
		}), Identity{User: "u1"}},
		{"scopes", sign(jwt.SigningMethodHS256, testSecret, claims(func(c jwt.MapClaims) { c["scope"] = ScopeImport + "  x" }), nil), Identity{User: "u1", Scopes: []string{ScopeImport, "x"}}},
		{"audience list", sign(jwt.SigningMethodHS256, testSecret, claims(func(c jwt.MapClaims) { c["aud"] = []string{"a", "likewise"} }), nil), Identity{User: "u1"}},
		{"names are case sensitive", sign(jwt.SigningMethodHS256, testSecret, claims(func(c jwt.MapClaims) { c["zSub"], c["SUB"] = "u2", "u2" }), nil), Identity{User: "u1"}},
		{"longest user", sign(jwt.SigningMethodHS256, testSecret, claims(func(c jwt.MapClaims) { c["sub"] = strings.Repeat("ü", like.MaxUserBytes/2) }), nil), Identity{User: like.User(strings.Repeat("ü", like.MaxUserBytes/2))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, when := range []string{"cold", "cached"} {
				got, err := v.Verify(t.Context(), tt.token)
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Fatalf("%s (-want +got):\n%s", when, diff)
				}
			}
		})
	}
}

func segment(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }

// badTokens are refused by every verifier of these tests, for many reasons.
func badTokens() map[string]string { return badTokensLike(goodClaims()) }

// badTokensLike returns bad tokens. Some are one character from the good one with
// these claims.
func badTokensLike(claims jwt.MapClaims) map[string]string {
	all := badForms(claims)
	maps.Copy(all, badKeys())
	maps.Copy(all, badClaims())
	return all
}

func badForms(claims jwt.MapClaims) map[string]string {
	good := sign(jwt.SigningMethodHS256, testSecret, claims, nil)
	parts := strings.Split(good, ".")
	none := func(alg, signature string) string {
		return segment(fmt.Sprintf(`{"alg":%q,"typ":"JWT"}`, alg)) + "." + parts[1] + "." + signature
	}
	// The last character of 32 bytes in base64 has two spare bits, which must be zero.
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(good) - 1
	spare := good[:last] + alphabet[strings.IndexByte(alphabet, good[last])+1:][:1]
	long := maps.Clone(claims)
	long["long"] = strings.Repeat("x", MaxTokenBytes)
	flipped := []byte(good)
	flipped[len(flipped)-10] ^= 1
	return map[string]string{
		"empty":                       "",
		"one part":                    "token",
		"two parts":                   parts[0] + "." + parts[1],
		"four parts":                  good + ".x",
		"five parts":                  "a.b.c.d.e",
		"only dots":                   "..",
		"too long":                    sign(jwt.SigningMethodHS256, testSecret, long, nil),
		"none":                        none("none", ""),
		"None":                        none("None", ""),
		"nOnE":                        none("nOnE", ""),
		"none with signature":         none("none", parts[2]),
		"None with signature":         none("None", parts[2]),
		"empty alg":                   none("", parts[2]),
		"no alg":                      segment(`{"typ":"JWT"}`) + "." + parts[1] + "." + parts[2],
		"alg is a number":             segment(`{"alg":256}`) + "." + parts[1] + "." + parts[2],
		"header is no object":         segment(`"HS256"`) + "." + parts[1] + "." + parts[2],
		"header has a tail":           segment(`{"alg":"HS256"}x`) + "." + parts[1] + "." + parts[2],
		"claims are no object":        parts[0] + "." + segment(`[]`) + "." + parts[2],
		"claims are null":             parts[0] + "." + segment(`null`) + "." + parts[2],
		"no signature":                parts[0] + "." + parts[1] + ".",
		"garbage signature":           parts[0] + "." + parts[1] + ".garbage",
		"flipped bit":                 string(flipped),
		"other claims":                parts[0] + "." + segment(`{"sub":"u2","exp":9999999999}`) + "." + parts[2],
		"padded":                      good + "=",
		"line break":                  good[:20] + "\n" + good[20:],
		"line break in the signature": good[:last] + "\n" + good[last:],
		"spare bits":                  spare,
		"space":                       good + " ",
		"standard base64":             parts[0] + "." + parts[1] + ".++//",
	}
}

func badKeys() map[string]string {
	header := func(name string, value any) string {
		return sign(jwt.SigningMethodHS256, testSecret, goodClaims(), func(h map[string]any) { h[name] = value })
	}
	rsaPublic := must(x509.MarshalPKIXPublicKey(rsaKey().Public()))
	ecPublic := must(ecKey().PublicKey.Bytes())
	return map[string]string{
		"other secret":              sign(jwt.SigningMethodHS256, bytes.Repeat([]byte("x"), 32), goodClaims(), nil),
		"empty secret":              sign(jwt.SigningMethodHS256, []byte{}, goodClaims(), nil),
		"HS384":                     sign(jwt.SigningMethodHS384, testSecret, goodClaims(), nil),
		"HS512":                     sign(jwt.SigningMethodHS512, testSecret, goodClaims(), nil),
		"HS256 with public RSA key": sign(jwt.SigningMethodHS256, rsaPublic, goodClaims(), withKid("r")),
		"HS256 with public EC key":  sign(jwt.SigningMethodHS256, ecPublic, goodClaims(), withKid("e")),
		"HS256 with public Ed key":  sign(jwt.SigningMethodHS256, []byte(edKey().Public().(ed25519.PublicKey)), goodClaims(), withKid("d")),
		"RS384":                     sign(jwt.SigningMethodRS384, rsaKey(), goodClaims(), withKid("r")),
		"PS256":                     sign(jwt.SigningMethodPS256, rsaKey(), goodClaims(), withKid("r")),
		"RS256 under another kid":   sign(jwt.SigningMethodRS256, rsaKey(), goodClaims(), withKid("e")),
		"ES256 under another kid":   sign(jwt.SigningMethodES256, ecKey(), goodClaims(), withKid("d")),
		"EdDSA without kid":         sign(jwt.SigningMethodEdDSA, edKey(), goodClaims(), nil),
		"unknown kid":               sign(jwt.SigningMethodEdDSA, edKey(), goodClaims(), withKid("x")),
		"kid is a path":             sign(jwt.SigningMethodEdDSA, edKey(), goodClaims(), withKid("../../dev/null")),
		"kid is too long":           header("kid", strings.Repeat("k", maxKidBytes+1)),
		"kid is a number":           header("kid", 1),
		"crit":                      header("crit", []string{"exp"}),
		"empty crit":                header("crit", []string{}),
		"b64":                       header("b64", false),
		"typ of another purpose":    header("typ", "logout+jwt"),
		"typ is a number":           header("typ", 1),
	}
}

func badClaims() map[string]string {
	with := func(change func(jwt.MapClaims)) string {
		c := goodClaims()
		change(c)
		return sign(jwt.SigningMethodHS256, testSecret, c, nil)
	}
	set := func(name string, value any) string { return with(func(c jwt.MapClaims) { c[name] = value }) }
	drop := func(name string) string { return with(func(c jwt.MapClaims) { delete(c, name) }) }
	now := time.Now().Unix()
	return map[string]string{
		"expired":                  set("exp", now-3600),
		"exp is zero":              set("exp", 0),
		"exp is negative":          set("exp", -1),
		"exp is text":              set("exp", fmt.Sprint(now+3600)),
		"exp is null":              set("exp", nil),
		"exp overflows":            set("exp", 1e300),
		"no exp":                   drop("exp"),
		"Exp instead of exp":       with(func(c jwt.MapClaims) { c["Exp"] = c["exp"]; delete(c, "exp") }),
		"not yet valid":            set("nbf", now+3600),
		"nbf is text":              set("nbf", "now"),
		"nbf overflows":            set("nbf", 1e300),
		"issued in the future":     set("iat", now+3600),
		"iat overflows":            set("iat", 1e300),
		"other issuer":             set("iss", "https://id.example.org"),
		"no issuer":                drop("iss"),
		"issuer is a list":         set("iss", []string{"https://id.example"}),
		"other audience":           set("aud", "likewise2"),
		"no audience":              drop("aud"),
		"audience of numbers":      set("aud", []any{"likewise", 1}),
		"no sub":                   drop("sub"),
		"empty sub":                set("sub", ""),
		"sub is a number":          set("sub", 7),
		"sub is too long":          set("sub", strings.Repeat("u", like.MaxUserBytes+1)),
		"control character in sub": set("sub", "u\x00"),
		"scope is a list":          set("scope", []string{ScopeAdmin}),
		"scope is null":            set("scope", nil),
	}
}

func TestVerifyRefuses(t *testing.T) {
	bad := badTokens()
	if len(bad) < 40 {
		t.Fatalf("only %d tokens", len(bad))
	}
	secretOnly := testConfig()
	both := testConfig()
	both.JWKS = writeFile(t, allKeys())
	setOnly := both
	setOnly.Secret = nil
	for name, cfg := range map[string]Config{"secret": secretOnly, "both": both, "set": setOnly} {
		v := newVerifier(t, cfg)
		for reason, token := range bad {
			t.Run(name+"/"+reason, func(t *testing.T) {
				for range 2 {
					got, err := v.Verify(t.Context(), token)
					// The very sentinel, not something that wraps it: no reason leaks.
					if err != ErrUnauthenticated || got.User != "" || got.Scopes != nil {
						t.Fatalf("got %+v, %v", got, err)
					}
				}
			})
		}
	}
}

// TestDisjointKeys: a token that one sort of key accepts means nothing to the other.
func TestDisjointKeys(t *testing.T) {
	secretOnly := testConfig()
	setOnly := testConfig()
	setOnly.Secret, setOnly.JWKS = nil, writeFile(t, allKeys())
	for name, tt := range map[string]struct {
		cfg   Config
		token string
	}{
		"ES256 for a secret": {secretOnly, sign(jwt.SigningMethodES256, ecKey(), goodClaims(), withKid("e"))},
		"HS256 for a set":    {setOnly, sign(jwt.SigningMethodHS256, testSecret, goodClaims(), nil)},
	} {
		if _, err := newVerifier(t, tt.cfg).Verify(t.Context(), tt.token); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClock(t *testing.T) {
	const leeway = 30 * time.Second
	for _, tt := range []struct {
		claim string
		off   time.Duration
		ok    bool
	}{
		{"exp", -5 * time.Minute, false},
		{"exp", -leeway, false},
		{"exp", -leeway + time.Second, true},
		{"exp", 5 * time.Minute, true},
		{"nbf", -5 * time.Minute, true},
		{"nbf", leeway, true},
		{"nbf", leeway + time.Second, false},
		{"nbf", 5 * time.Minute, false},
		{"iat", -5 * time.Minute, true},
		{"iat", leeway, true},
		{"iat", leeway + time.Second, false},
		{"iat", 5 * time.Minute, false},
	} {
		t.Run(fmt.Sprint(tt.claim, tt.off), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				claims := goodClaims()
				claims[tt.claim] = time.Now().Add(tt.off).Unix()
				v := newVerifier(t, testConfig())
				_, err := v.Verify(t.Context(), sign(jwt.SigningMethodHS256, testSecret, claims, nil))
				if (err == nil) != tt.ok {
					t.Fatalf("got %v, want ok %v", err, tt.ok)
				}
			})
		})
	}
}

func TestCachedTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		cfg.Leeway = 0
		v := newVerifier(t, cfg)
		token := must(Sign(cfg, "u1", nil, time.Hour))
		if _, ok := v.Known(token); ok {
			t.Fatal("known before it was verified")
		}
		for range 60 {
			if _, err := v.Verify(t.Context(), token); err != nil {
				t.Fatal(err)
			}
			if known, ok := v.Known(token); !ok || known.User != "u1" {
				t.Fatalf("known %v: %+v", ok, known)
			}
			time.Sleep(time.Minute)
		}
		if _, ok := v.Known(token); ok {
			t.Fatal("known at its exp")
		}
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, ErrUnauthenticated) {
			t.Fatalf("at its exp: %v", err)
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	cfg := testConfig()
	cfg.CacheTokens = 10
	v := newVerifier(t, cfg)
	for i := range 1000 {
		if _, err := v.Verify(t.Context(), must(Sign(cfg, like.User(fmt.Sprint(i)), nil, time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	v.cache.CleanUp()
	if n := v.cache.EstimatedSize(); n > 10 {
		t.Fatalf("%d tokens remembered", n)
	}
}

// TestNothingSecretIsLogged refuses and accepts tokens at debug level and looks
// for their parts and the secret in the log.
func TestNothingSecretIsLogged(t *testing.T) {
	var log bytes.Buffer
	cfg := testConfig()
	v := must(New(cfg, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	tokens := badTokens()
	tokens["good"] = must(Sign(cfg, "u1", nil, time.Hour))
	for _, token := range tokens {
		v.Verify(t.Context(), token)
	}
	if !strings.Contains(log.String(), "token refused") {
		t.Fatal("no reason in the log")
	}
	if strings.Contains(log.String(), string(testSecret)) {
		t.Error("the secret is in the log")
	}
	for name, token := range tokens {
		for part := range strings.SplitSeq(token, ".") {
			if len(part) > 8 && strings.Contains(log.String(), part) {
				t.Errorf("token %q: part in the log", name)
			}
		}
	}
}

// FuzzVerify: nothing but the tokens that were signed here is ever accepted, and
// nothing panics. The claims are fixed because every fuzzing process signs anew.
func FuzzVerify(f *testing.F) {
	cfg := testConfig()
	cfg.JWKS = writeFile(f, allKeys())
	v := newVerifier(f, cfg)
	claims := jwt.MapClaims{"sub": "u1", "exp": maxDate, "iss": cfg.Issuer, "aud": cfg.Audience}
	good := map[string]bool{
		sign(jwt.SigningMethodHS256, testSecret, claims, nil):        true,
		sign(jwt.SigningMethodRS256, rsaKey(), claims, withKid("r")): true,
		sign(jwt.SigningMethodES256, ecKey(), claims, withKid("e")):  true,
		sign(jwt.SigningMethodEdDSA, edKey(), claims, withKid("d")):  true,
	}
	for token := range good {
		f.Add(token)
	}
	for _, token := range badTokensLike(claims) { // a mutation may mend one, into the good one
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		_, err := v.Verify(t.Context(), token)
		if (err == nil) != good[token] || err != nil && !errors.Is(err, ErrUnauthenticated) {
			t.Fatalf("%q: %v", token, err)
		}
	})
}

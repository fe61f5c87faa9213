package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"likewise/internal/like"
)

// endpoint is a key set source that a test can change and break.
type endpoint struct {
	mu      sync.Mutex
	set     []byte
	err     error
	delay   time.Duration
	fetches atomic.Int64
}

func (e *endpoint) serve(set []byte, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set, e.err = set, err
}

func (e *endpoint) fetch(ctx context.Context) ([]byte, error) {
	e.fetches.Add(1)
	e.mu.Lock()
	set, err, delay := e.set, e.err, e.delay
	e.mu.Unlock()
	select {
	case <-time.After(delay):
		return set, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errDown = errors.New("endpoint is down")

// remoteVerifier returns a verifier that knows only the keys of an endpoint.
func remoteVerifier(t *testing.T, e *endpoint) *Verifier {
	cfg := testConfig()
	cfg.Secret, cfg.JWKS = nil, "https://id.example/keys"
	v := newVerifier(t, cfg)
	v.ring.fetch = e.fetch
	return v
}

func ecSet(kid string) []byte { return keySetJSON(jwk(ecKey().Public(), map[string]any{"kid": kid})) }

func ecToken(kid string) string {
	claims := goodClaims()
	claims["exp"] = time.Now().Add(24 * time.Hour).Unix()
	return sign(jwt.SigningMethodES256, ecKey(), claims, withKid(kid))
}

func verify(t *testing.T, v *Verifier, token string, want error) {
	t.Helper()
	_, err := v.Verify(t.Context(), token)
	if !errors.Is(err, want) || err != nil && want == nil {
		t.Errorf("Verify: %v, want %v", err, want)
	}
}

func TestKeysNeverLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{err: errDown}
		v := remoteVerifier(t, e)
		defer start(t, v)()
		synctest.Wait()
		verify(t, v, ecToken("a"), like.ErrUnavailable)
		verify(t, v, "garbage", ErrUnauthenticated)
		if err := v.Ready(); !errors.Is(err, like.ErrUnavailable) {
			t.Fatalf("Ready: %v", err)
		}
		time.Sleep(10 * time.Minute)
		if n := e.fetches.Load(); n < 10 || n > 16 {
			t.Errorf("%d fetches in ten minutes", n)
		}
		e.serve(ecSet("a"), nil)
		time.Sleep(refreshGap)
		synctest.Wait()
		verify(t, v, ecToken("a"), nil)
		if err := v.Ready(); err != nil {
			t.Fatalf("Ready: %v", err)
		}
	})
}

func TestRandomKidsCostOneFetchAMinute(t *testing.T) {
	for _, tt := range []struct {
		name  string
		delay time.Duration
		err   error
	}{{"answers", time.Millisecond, nil}, {"hangs", fetchTimeout, nil}, {"fails", 0, errDown}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &endpoint{set: ecSet("a")}
				v := remoteVerifier(t, e)
				defer start(t, v)()
				synctest.Wait()
				e.mu.Lock()
				e.delay, e.err = tt.delay, tt.err
				e.mu.Unlock()
				claims := goodClaims()
				before := e.fetches.Load()
				begin := time.Now()
				var wg sync.WaitGroup
				for worker := range 10 {
					wg.Go(func() {
						for i := range 1000 {
							kid := fmt.Sprint(worker, "-", i)
							asked := time.Now()
							verify(t, v, sign(jwt.SigningMethodHS256, testSecret, claims, func(h map[string]any) {
								h["kid"], h["alg"] = kid, algES256
							}), ErrUnauthenticated)
							if d := time.Since(asked); d > unknownKeyWait {
								t.Errorf("stalled for %v", d)
							}
							time.Sleep(180 * time.Millisecond)
						}
					})
				}
				wg.Wait()
				minutes := int64(time.Since(begin)/time.Minute) + 1
				if n := e.fetches.Load() - before; n == 0 || n > minutes {
					t.Fatalf("%d fetches in %d minutes", n, minutes)
				}
				verify(t, v, ecToken("a"), nil)
			})
		})
	}
}

func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{set: ecSet("old"), delay: 20 * time.Millisecond}
		v := remoteVerifier(t, e)
		defer start(t, v)()
		time.Sleep(refreshGap + time.Second)
		old := ecToken("old")
		verify(t, v, old, nil)

		both := keySetJSON(
			jwk(ecKey().Public(), map[string]any{"kid": "old"}),
			jwk(ecKey().Public(), map[string]any{"kid": "new"}))
		e.serve(both, nil)
		verify(t, v, ecToken("new"), nil) // found by a refresh that it waits for
		verify(t, v, old, nil)

		e.serve(ecSet("new"), nil)
		time.Sleep(5*time.Minute + time.Second)
		verify(t, v, ecToken("new"), nil)
		verify(t, v, old, ErrUnauthenticated) // though it was remembered
	})
}

func TestEndpointDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{set: ecSet("a")}
		v := remoteVerifier(t, e)
		defer start(t, v)()
		synctest.Wait()
		token := ecToken("a")
		verify(t, v, token, nil)
		time.Sleep(time.Second) // keeps the attempts off the edges of the hours below
		for _, bad := range []struct {
			set []byte
			err error
		}{{nil, errDown}, {[]byte("<html>"), nil}, {[]byte(`{"keys":[]}`), nil}} {
			e.serve(bad.set, bad.err)
			before := e.fetches.Load()
			for range 60 {
				time.Sleep(time.Minute)
				verify(t, v, token, nil)
				verify(t, v, ecToken("a"), nil)
			}
			if n := e.fetches.Load() - before; n < 50 || n > 60 {
				t.Errorf("%d attempts in an hour", n)
			}
		}
	})
}

// TestKeysExpire takes the endpoint away for longer than keys may be old.
func TestKeysExpire(t *testing.T) {
	for name, age := range map[string]time.Duration{"after a day": 24 * time.Hour, "never": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &endpoint{set: ecSet("a")}
				v := remoteVerifier(t, e)
				v.ring.age = age
				defer start(t, v)()
				time.Sleep(30 * time.Hour) // an endpoint that says the same keeps its keys young
				token := ecToken("a")
				verify(t, v, token, nil)

				e.serve(nil, errDown)
				time.Sleep(21 * time.Hour)
				verify(t, v, token, nil)
				if err := v.Ready(); err != nil {
					t.Errorf("Ready after 21 hours: %v", err)
				}
				time.Sleep(time.Hour)
				verify(t, v, token, nil)
				if err := v.Ready(); (age > 0) != errors.Is(err, like.ErrUnavailable) {
					t.Errorf("Ready after 22 hours: %v", err)
				}
				time.Sleep(2*time.Hour + time.Second)
				fresh := ecToken("a")
				if age == 0 {
					verify(t, v, fresh, nil)
					return
				}
				verify(t, v, fresh, like.ErrUnavailable)
				if _, ok := v.Known(token); ok {
					t.Error("a remembered token outlives its key")
				}
				verify(t, v, "garbage", ErrUnauthenticated)

				e.serve(ecSet("a"), nil)
				time.Sleep(refreshGap + time.Second)
				verify(t, v, fresh, nil)
				if err := v.Ready(); err != nil {
					t.Errorf("Ready again: %v", err)
				}
			})
		})
	}
}

func TestRunEndsWhileFetching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{delay: time.Hour}
		v := remoteVerifier(t, e)
		stop := start(t, v)
		synctest.Wait()
		begin := time.Now()
		stop()
		if d := time.Since(begin); d != 0 {
			t.Fatalf("Run ended after %v", d)
		}
	})
}

func TestFileIsReadAgain(t *testing.T) {
	cfg := testConfig()
	cfg.JWKS = writeFile(t, ecSet("a"))
	v := newVerifier(t, cfg)
	verify(t, v, ecToken("a"), nil)
	if err := os.WriteFile(cfg.JWKS, ecSet("b"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.ring.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	verify(t, v, ecToken("b"), nil)
}

func TestFetchURL(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, _ *http.Request) { w.Write(ecSet("a")) })
	mux.Handle("/moved", http.RedirectHandler("/good", http.StatusFound))
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, maxSetBytes+1)) })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	server := httptest.NewServer(mux)
	defer server.Close()
	for path, ok := range map[string]bool{"/good": true, "/moved": false, "/large": false, "/broken": false, "/none": false} {
		cfg := testConfig()
		cfg.Secret, cfg.JWKS = nil, server.URL+path
		v := newVerifier(t, cfg)
		if err := v.ring.refresh(t.Context()); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
		if err := v.Ready(); (err == nil) != ok {
			t.Errorf("%s: Ready: %v", path, err)
		}
	}
}

func TestParseKeySet(t *testing.T) {
	ec := func(fields map[string]any) map[string]any { return jwk(ecKey().Public(), fields) }
	set := must(parseKeySet(keySetJSON(
		ec(map[string]any{"kid": "good"}),
		ec(map[string]any{"kid": "encryption", "use": "enc"}),
		ec(map[string]any{"kid": "signing only", "key_ops": []string{"sign"}}),
		ec(map[string]any{"kid": "other algorithm", "alg": "ES384"}),
		ec(map[string]any{"kid": "another type's algorithm", "alg": "RS256"}),
		ec(map[string]any{"kid": "symmetric algorithm", "alg": "HS256"}),
		ec(map[string]any{"kid": "off the curve", "x": "AAAA"}),
		ec(map[string]any{"kid": "other curve", "crv": "P-384"}),
		ec(map[string]any{"kid": strings.Repeat("k", maxKidBytes+1)}),
		jwk(rsaKey().Public(), map[string]any{"kid": "weak", "n": "wVtMZdLxLEtwYmBW"}),
		map[string]any{"kid": "secret", "kty": "oct", "k": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"},
		map[string]any{"kid": "future", "kty": "PQ"},
	)))
	if len(set.keys) != 1 || set.keys[keyID{alg: algES256, kid: "good"}] == nil {
		t.Fatalf("keys: %v", set.keys)
	}
	for name, raw := range map[string][]byte{
		"no JSON":      []byte("-----BEGIN PUBLIC KEY-----"),
		"empty":        []byte(`{"keys":[]}`),
		"nothing fits": keySetJSON(ec(map[string]any{"use": "enc"})),
		"name twice":   keySetJSON(ec(map[string]any{"kid": "a"}), ec(map[string]any{"kid": "a"})),
	} {
		if _, err := parseKeySet(raw); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTokenWithoutKid(t *testing.T) {
	cfg := testConfig()
	cfg.Secret, cfg.JWKS = nil, writeFile(t, ecSet("only"))
	v := newVerifier(t, cfg)
	verify(t, v, sign(jwt.SigningMethodES256, ecKey(), goodClaims(), nil), nil)
	verify(t, v, sign(jwt.SigningMethodEdDSA, edKey(), goodClaims(), nil), ErrUnauthenticated)
	if _, ok := v.ring.keys.Load().find(keyID{alg: algEdDSA}); ok {
		t.Error("a key was found for another algorithm")
	}
}

package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	testSecret = []byte("0123456789abcdef0123456789abcdef")
	silent     = slog.New(slog.DiscardHandler)

	rsaKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, minRSABits)) })
	ecKey  = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	edKey  = sync.OnceValue(func() ed25519.PrivateKey {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return must(key, err)
	})
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// jwk returns a public key as one entry of a key set, with fields replaced.
func jwk(public any, fields map[string]any) map[string]any {
	key := must(jwkset.NewJWKFromKey(public, jwkset.JWKOptions{}))
	var entry map[string]any
	if err := json.Unmarshal(must(json.Marshal(key.Marshal())), &entry); err != nil {
		panic(err)
	}
	delete(entry, "alg")
	maps.Copy(entry, fields)
	return entry
}

func keySetJSON(entries ...map[string]any) []byte {
	return must(json.Marshal(map[string]any{"keys": entries}))
}

// allKeys is a set with one key of each algorithm: kid r, e and d.
func allKeys() []byte {
	return keySetJSON(
		jwk(rsaKey().Public(), map[string]any{"kid": "r", "alg": "RS256", "use": "sig"}),
		jwk(ecKey().Public(), map[string]any{"kid": "e"}),
		jwk(edKey().Public(), map[string]any{"kid": "d", "key_ops": []string{"verify"}}),
	)
}

// goodClaims is a payload that every verifier of these tests accepts.
func goodClaims() jwt.MapClaims {
	now := time.Now().Unix()
	return jwt.MapClaims{"sub": "u1", "iat": now, "exp": now + 3600, "iss": "https://id.example", "aud": "likewise"}
}

// sign makes a token; change, which may be nil, edits its header.
func sign(method jwt.SigningMethod, key any, claims jwt.Claims, change func(header map[string]any)) string {
	token := jwt.NewWithClaims(method, claims)
	if change != nil {
		change(token.Header)
	}
	return must(token.SignedString(key))
}

func withKid(kid any) func(map[string]any) {
	return func(h map[string]any) { h["kid"] = kid }
}

func testConfig() Config {
	cfg := DefaultConfig()
	cfg.Secret = testSecret
	cfg.Issuer = "https://id.example"
	cfg.Audience = "likewise"
	return cfg
}

func newVerifier(t testing.TB, cfg Config) *Verifier {
	t.Helper()
	v, err := New(cfg, silent)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func writeFile(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// start runs the verifier until the test ends and waits for its end.
func start(t *testing.T, v *Verifier) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := v.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

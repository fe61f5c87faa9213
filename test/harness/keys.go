package harness

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Scopes of tokens that stand for more than their own user.
const (
	ScopeWriteAny = "likes:write:any" // batches that name users
	ScopeImport   = "likes:import"    // batches that carry original times
	ScopeAdmin    = "likes:admin"     // the admin listener
)

// Keys signs tokens with a secret that the nodes under test are given as a file.
// Safe for concurrent use.
type Keys struct {
	File   string // path of the secret, one line of text
	Secret []byte

	mu     sync.Mutex
	tokens map[[2]string]string // by user and scope
}

// NewKeys makes a secret and its file in a directory of the test.
func NewKeys(t testing.TB) *Keys {
	t.Helper()
	raw := make([]byte, 32)
	rand.Read(raw)
	file := filepath.Join(t.TempDir(), "jwt-secret")
	if err := os.WriteFile(file, []byte(hex.EncodeToString(raw)), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadKeys(t, file)
}

// LoadKeys signs with the secret of a service that runs already.
func LoadKeys(t testing.TB, file string) *Keys {
	t.Helper()
	secret, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return &Keys{File: file, Secret: bytes.TrimSpace(secret), tokens: map[[2]string]string{}}
}

// Claims returns what a good token of the user says, for a test to break.
func (k *Keys) Claims(user, scope string) jwt.MapClaims {
	now := time.Now()
	c := jwt.MapClaims{"sub": user, "iat": now.Unix(), "exp": now.Add(6 * time.Hour).Unix()}
	if scope != "" {
		c["scope"] = scope
	}
	return c
}

// Token returns a good token of the user; the same one on every call.
func (k *Keys) Token(user, scope string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := [2]string{user, scope}
	if k.tokens[id] == "" {
		k.tokens[id] = k.Sign(k.Claims(user, scope))
	}
	return k.tokens[id]
}

// Sign signs claims with HS256 and the secret.
func (k *Keys) Sign(claims jwt.MapClaims) string {
	s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(k.Secret)
	if err != nil {
		panic(err) // only claims that cannot be JSON
	}
	return s
}

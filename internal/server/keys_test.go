package server

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/like"
)

func keyFile(t *testing.T, name string, fill byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, bytes.Repeat([]byte{fill}, 40), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoadKeys(t *testing.T, cfg config.Config) keys {
	t.Helper()
	k, err := loadKeys(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeys(t *testing.T) {
	own := config.DefaultConfig()
	own.DataDir = t.TempDir()
	shared, jwks, named := own, own, own
	shared.JWT.SecretFile = keyFile(t, "secret", 'a')
	jwks.DataDir = t.TempDir()
	jwks.JWKS = keyFile(t, "jwks.json", '{')
	named.CursorKeyFile = keyFile(t, "cursors", 'c')

	k := mustLoadKeys(t, own)
	if again := mustLoadKeys(t, own); !bytes.Equal(k.auth.Secret, again.auth.Secret) || !bytes.Equal(k.cursor, again.cursor) {
		t.Error("a second start has other keys")
	}
	if len(k.cursor) != 32 || bytes.Contains(k.auth.Secret, k.cursor) {
		t.Errorf("cursor key of %d bytes, or one that shows the secret", len(k.cursor))
	}
	other := mustLoadKeys(t, shared)
	if !bytes.Equal(other.auth.Secret, bytes.Repeat([]byte{'a'}, 40)) || bytes.Equal(other.cursor, k.cursor) {
		t.Error("the configured secret does not count")
	}
	elsewhere := shared
	elsewhere.DataDir = t.TempDir()
	if !bytes.Equal(mustLoadKeys(t, elsewhere).cursor, other.cursor) {
		t.Error("two nodes with one secret have different cursor keys")
	}
	if got := mustLoadKeys(t, named); !bytes.Equal(got.cursor, bytes.Repeat([]byte{'c'}, 40)) {
		t.Error("the configured cursor key does not count")
	}
	only := mustLoadKeys(t, jwks)
	if only.auth.Secret != nil || len(only.cursor) < 32 {
		t.Errorf("with a key set only: secret %v, cursor key of %d bytes", only.auth.Secret, len(only.cursor))
	}
	if _, err := os.Stat(filepath.Join(jwks.DataDir, "token.key")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a token key was made beside a key set: %v", err)
	}
}

func TestToken(t *testing.T) {
	cfg := config.DefaultConfig()
	cfg.DataDir = t.TempDir()
	if _, err := Token(cfg, "ann", nil, time.Hour); !errors.Is(err, like.ErrNotFound) || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("without a key: %v", err)
	}
	if files, _ := os.ReadDir(cfg.DataDir); len(files) > 0 {
		t.Errorf("asking for a token made %v", files)
	}
	k := mustLoadKeys(t, cfg)
	token, err := Token(cfg, "ann", []string{auth.ScopeAdmin}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	v, err := auth.New(k.auth, testOptions().Log)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Verify(context.Background(), token); err != nil || got.User != "ann" || !got.Has(auth.ScopeAdmin) {
		t.Errorf("the server reads %+v, %v", got, err)
	}
	cfg.JWKS = "https://id.example.org/jwks.json"
	if _, err := Token(cfg, "ann", nil, time.Hour); !errors.Is(err, like.ErrInvalid) || !strings.Contains(err.Error(), "id.example.org") {
		t.Errorf("with a key set: %v", err)
	}
}

func TestLocalURL(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080",
		":8080":          "http://127.0.0.1:8080",
		"0.0.0.0:8080":   "http://127.0.0.1:8080",
		"[::]:8080":      "http://127.0.0.1:8080",
		"[::1]:8080":     "http://[::1]:8080",
		"likes.lan:80":   "http://likes.lan:80",
	} {
		if got := localURL(listen); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}

func TestGreeting(t *testing.T) {
	cfg := testConfig(t)
	r := start(t, cfg, testOptions())
	var out strings.Builder
	r.Greet(&out, cfg, "likewise")
	for _, part := range []string{r.api + "/v1/posts/42/like", r.admin, cfg.DataDir, "$(likewise token alice --data-dir " + cfg.DataDir + ")"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the greeting does not say %q:\n%s", part, out.String())
		}
	}
	cfg.JWT.SecretFile = "/run/secret"
	out.Reset()
	r.Greet(&out, cfg, "likewise")
	if strings.Contains(out.String(), "token alice") || !strings.Contains(out.String(), "/run/secret") {
		t.Errorf("the greeting with a secret of its own:\n%s", out.String())
	}
}

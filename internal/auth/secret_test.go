package auth

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"likewise/internal/like"
)

func TestLoadSecret(t *testing.T) {
	for _, tt := range []struct {
		name    string
		content string
		want    string // "" where it is refused
	}{
		{"plain", string(testSecret), string(testSecret)},
		{"line break", string(testSecret) + "\n", string(testSecret)},
		{"DOS line break", string(testSecret) + "\r\n", string(testSecret)},
		{"leading blank is part of it", " " + string(testSecret), " " + string(testSecret)},
		{"too short", string(testSecret[:31]), ""},
		{"too short without line break", string(testSecret[:31]) + "\n", ""},
		{"empty", "", ""},
		{"too long", strings.Repeat("x", maxSecretBytes+1), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := LoadSecret(writeFile(t, []byte(tt.content)))
			if string(got) != tt.want || (err != nil) != (tt.want == "") {
				t.Fatalf("got %q, %v", got, err)
			}
			if err != nil && !errors.Is(err, like.ErrInvalid) {
				t.Fatalf("kind of %v", err)
			}
		})
	}
	if _, err := LoadSecret(filepath.Join(t.TempDir(), "none")); !errors.Is(err, like.ErrInvalid) {
		t.Fatalf("missing file: %v", err)
	}
}

func TestSecretMode(t *testing.T) {
	for _, tt := range []struct {
		mode          os.FileMode
		loaded, owned bool
	}{{0o600, true, true}, {0o400, true, true}, {0o640, true, false}, {0o644, true, false}, {0o666, false, false}} {
		path := writeFile(t, testSecret)
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadSecret(path); (err == nil) != tt.loaded {
			t.Errorf("LoadSecret %04o: %v", tt.mode, err)
		}
		if _, err := LoadOrCreateKey(path); (err == nil) != tt.owned {
			t.Errorf("LoadOrCreateKey %04o: %v", tt.mode, err)
		}
	}
}

func TestLoadOrCreateKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token.key")
	keys := make([][]byte, 20)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			key, err := LoadOrCreateKey(path)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	wg.Wait()
	for _, key := range keys {
		if len(key) != 64 || !bytes.Equal(key, keys[0]) {
			t.Fatalf("key of %d bytes, or not the same for all", len(key))
		}
	}
	entries := must(os.ReadDir(dir))
	if len(entries) != 1 {
		t.Fatalf("left behind: %v", entries)
	}
	if mode := must(entries[0].Info()).Mode(); mode != 0o600 {
		t.Fatalf("mode %v", mode)
	}
	if again := must(LoadSecret(path)); !bytes.Equal(again, keys[0]) {
		t.Fatal("a later start reads another key")
	}
	other := must(LoadOrCreateKey(filepath.Join(t.TempDir(), "token.key")))
	if bytes.Equal(other, keys[0]) {
		t.Fatal("two directories got one key")
	}
	if _, err := LoadOrCreateKey(filepath.Join(dir, "none", "token.key")); err == nil {
		t.Fatal("created in a missing directory")
	}
}

func TestLoadOrCreateKeyKeepsBadFile(t *testing.T) {
	path := writeFile(t, []byte("short\n"))
	if _, err := LoadOrCreateKey(path); !errors.Is(err, like.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	if got := must(os.ReadFile(path)); string(got) != "short\n" {
		t.Fatalf("file now has %q", got)
	}
}

func TestSign(t *testing.T) {
	cfg := testConfig()
	v := newVerifier(t, cfg)
	identity, err := v.Verify(t.Context(), must(Sign(cfg, "u1", []string{ScopeWriteAny, ScopeImport}, time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	for scope, want := range map[string]bool{ScopeWriteAny: true, ScopeImport: true, ScopeAdmin: false, "": false, "likes": false} {
		if identity.Has(scope) != want {
			t.Errorf("Has(%q) = %v", scope, !want)
		}
	}
	weak := cfg
	weak.Secret = testSecret[:31]
	for name, call := range map[string]func() (string, error){
		"weak secret":   func() (string, error) { return Sign(weak, "u1", nil, time.Hour) },
		"no user":       func() (string, error) { return Sign(cfg, "", nil, time.Hour) },
		"unknown scope": func() (string, error) { return Sign(cfg, "u1", []string{"likes:everything"}, time.Hour) },
		"no lifetime":   func() (string, error) { return Sign(cfg, "u1", nil, 0) },
	} {
		if token, err := call(); !errors.Is(err, like.ErrInvalid) || token != "" {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
}

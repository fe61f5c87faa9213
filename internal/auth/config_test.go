package auth

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"likewise/internal/like"
)

func TestValidate(t *testing.T) {
	with := func(change func(*Config)) Config {
		c := testConfig()
		change(&c)
		return c
	}
	for _, tt := range []struct {
		name string
		cfg  Config
		ok   bool
	}{
		{"secret", testConfig(), true},
		{"https", with(func(c *Config) { c.JWKS = "https://id.example/keys" }), true},
		{"http to loopback", with(func(c *Config) { c.JWKS = "http://127.0.0.1:8000/keys" }), true},
		{"http to loopback IPv6", with(func(c *Config) { c.JWKS = "http://[::1]:8000/keys" }), true},
		{"http to localhost", with(func(c *Config) { c.JWKS = "http://localhost/keys" }), true},
		{"http allowed", with(func(c *Config) { c.JWKS, c.AllowHTTP = "http://id.internal/keys", true }), true},
		{"no key", DefaultConfig(), false},
		{"short secret", with(func(c *Config) { c.Secret = c.Secret[1:] }), false},
		{"http", with(func(c *Config) { c.JWKS = "http://id.example/keys" }), false},
		{"http to a look-alike", with(func(c *Config) { c.JWKS = "http://localhost.example/keys" }), false},
		{"other scheme", with(func(c *Config) { c.JWKS, c.AllowHTTP = "ftp://id.example/keys", true }), false},
		{"no host", with(func(c *Config) { c.JWKS = "https:///keys" }), false},
		{"missing file", with(func(c *Config) { c.JWKS = "/nonexistent/keys.json" }), false},
		{"negative leeway", with(func(c *Config) { c.Leeway = -1 }), false},
		{"long leeway", with(func(c *Config) { c.Leeway = time.Minute + 1 }), false},
		{"fast refresh", with(func(c *Config) { c.Refresh = time.Second }), false},
		{"keys older than two readings", with(func(c *Config) { c.MaxAge = 9 * time.Minute }), false},
		{"keys of two readings", with(func(c *Config) { c.MaxAge = 10 * time.Minute }), true},
		{"keys of any age", with(func(c *Config) { c.MaxAge = 0 }), true},
		{"slow refresh", with(func(c *Config) { c.Refresh = 48 * time.Hour }), false},
		{"negative cache", with(func(c *Config) { c.CacheTokens = -1 }), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.cfg, silent)
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, like.ErrInvalid) {
				t.Fatalf("New: %v, want ok %v", err, tt.ok)
			}
		})
	}
}

func TestBearerToken(t *testing.T) {
	for _, tt := range []struct {
		name    string
		headers []string
		token   string
		present bool
		ok      bool
	}{
		{"none", nil, "", false, true},
		{"bearer", []string{"Bearer a.b.c"}, "a.b.c", true, true},
		{"any case", []string{"bEARER a.b.c"}, "a.b.c", true, true},
		{"more blanks", []string{"Bearer   a.b.c"}, "a.b.c", true, true},
		{"empty header", []string{""}, "", true, false},
		{"scheme alone", []string{"Bearer"}, "", true, false},
		{"scheme and blank", []string{"Bearer "}, "", true, false},
		{"token alone", []string{"a.b.c"}, "", true, false},
		{"other scheme", []string{"Basic dTE6cGFzcw=="}, "", true, false},
		{"longer scheme", []string{"BearerX a.b.c"}, "", true, false},
		{"two tokens", []string{"Bearer a.b.c d.e.f"}, "", true, false},
		{"joined headers", []string{"Bearer a.b.c,Bearer"}, "", true, false},
		{"two headers", []string{"Bearer a.b.c", "Bearer a.b.c"}, "", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/?access_token=q.q.q", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header["Authorization"] = tt.headers
			if tt.headers == nil {
				delete(r.Header, "Authorization")
			}
			token, present, err := BearerToken(r)
			if token != tt.token || present != tt.present || (err == nil) != tt.ok {
				t.Fatalf("got %q, %v, %v", token, present, err)
			}
			if err != nil && !errors.Is(err, ErrUnauthenticated) {
				t.Fatalf("kind of %v", err)
			}
		})
	}
}

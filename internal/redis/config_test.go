package redis

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"likewise/internal/like"
)

func TestURL(t *testing.T) {
	for _, tt := range []struct {
		url            string
		addresses      []string
		user, password string
		db             int
		tls            bool
	}{
		{url: "redis://localhost", addresses: []string{"localhost:6379"}},
		{url: "redis://localhost:1/", addresses: []string{"localhost:1"}},
		{url: "redis://a:1,b:2, c:3", addresses: []string{"a:1", "b:2", "c:3"}},
		{url: "redis://a,b:2/0", addresses: []string{"a:6379", "b:2"}},
		{url: "redis://[::1]:7,[::2]", addresses: []string{"[::1]:7", "[::2]:6379"}},
		{url: "redis://a:1/15", addresses: []string{"a:1"}, db: 15},
		{url: "redis://:secret@a:1", addresses: []string{"a:1"}, password: "secret"},
		{url: "redis://me:s%40cr%3Aet%2F@a:1,b:1", addresses: []string{"a:1", "b:1"}, user: "me", password: "s@cr:et/"},
		{url: "redis://me:se@cr:et/@a:1", addresses: []string{"a:1"}, user: "me", password: "se@cr:et/"},
		{url: "rediss://me:x@a:1/2", addresses: []string{"a:1"}, user: "me", password: "x", db: 2, tls: true},
	} {
		var o rueidis.ClientOption
		err := readURL(tt.url, &o)
		if err != nil || o.Username != tt.user || o.Password != tt.password || o.SelectDB != tt.db || (o.TLSConfig != nil) != tt.tls {
			t.Errorf("%s: user %q, password %q, database %d, %v", tt.url, o.Username, o.Password, o.SelectDB, err)
		}
		if diff := cmp.Diff(tt.addresses, o.InitAddress); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.url, diff)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no URL":                 func(c *Config) { c.URL = "" },
		"no scheme":              func(c *Config) { c.URL = "localhost:6379" },
		"other scheme":           func(c *Config) { c.URL = "http://:hunter2@localhost" },
		"no address":             func(c *Config) { c.URL = "redis://" },
		"no host":                func(c *Config) { c.URL = "redis://:hunter2@:6379" },
		"empty address":          func(c *Config) { c.URL = "redis://:hunter2@a:1,,b:1" },
		"no port":                func(c *Config) { c.URL = "redis://:hunter2@a:" },
		"port out of range":      func(c *Config) { c.URL = "redis://:hunter2@a:65536" },
		"port is no number":      func(c *Config) { c.URL = "redis://:hunter2@a:b" },
		"bare IPv6":              func(c *Config) { c.URL = "redis://:hunter2@::1" },
		"database is no number":  func(c *Config) { c.URL = "redis://:hunter2@a/b" },
		"query":                  func(c *Config) { c.URL = "redis://:hunter2@a/0?db=1" },
		"database of a cluster":  func(c *Config) { c.URL = "redis://:hunter2@a,b/1" },
		"password not encoded":   func(c *Config) { c.URL = "redis://:hunter2%@a" },
		"no prefix":              func(c *Config) { c.Prefix = "" },
		"prefix is a hash tag":   func(c *Config) { c.Prefix = "{x}" },
		"prefix is long":         func(c *Config) { c.Prefix = strings.Repeat("x", maxPrefix+1) },
		"totals are not kept":    func(c *Config) { c.TTL = 0 },
		"totals are hardly kept": func(c *Config) { c.TTL = time.Microsecond },
		"no time":                func(c *Config) { c.Timeout = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.URL = "redis://:hunter2@localhost"
			change(&cfg)
			_, err := Open(cfg, quiet(t), nil)
			if !errors.Is(err, like.ErrInvalid) {
				t.Fatalf("Open: %v, want ErrInvalid", err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password is in %q", err)
			}
		})
	}
}

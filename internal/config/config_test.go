package config

import (
	"flag"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite docs/config.md")

// load writes the file when it is not empty and calls Load.
func load(t *testing.T, file string, environ, args []string) (Effective, error) {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(fs)
	if file != "" {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	if err := fs.Parse(args); err != nil {
		return Effective{}, err
	}
	return Load(fs, environ)
}

func TestDefaultsAreValid(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := load(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, e.Config, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("Load without input differs from DefaultConfig:\n%s", diff)
	}
	if c.Listen != "127.0.0.1:8080" || c.AdminListen != "127.0.0.1:9090" || c.DataDir != "./likewise-data" {
		t.Errorf("the addresses and the directory that people rely on have moved: %q %q %q", c.Listen, c.AdminListen, c.DataDir)
	}
	if c.Limits.UserRate != 5 || c.Limits.UserBurst != 10 || c.Limits.MaxHeaderBytes != 16<<10 || c.JWT.Leeway != 30*time.Second {
		t.Errorf("limits = %+v, jwt = %+v", c.Limits, c.JWT)
	}
}

func TestNamesAreOneRule(t *testing.T) {
	flags, envs := map[string]bool{}, map[string]bool{}
	for _, s := range settings {
		if flags[s.flag] || envs[s.env] {
			t.Errorf("%s: another setting has the flag %s or the variable %s", s.key, s.flag, s.env)
		}
		flags[s.flag], envs[s.env] = true, true
		if serviceLink.MatchString(s.env) {
			t.Errorf("%s: %s looks like a variable that Kubernetes sets; rename the setting", s.key, s.env)
		}
		if s.doc == "" || s.key == "" || strings.ContainsAny(s.doc, "|\n") {
			t.Errorf("%q needs a key and a one-line doc", s.key)
		}
	}
	for _, want := range []string{"listen", "admin-listen", "data-dir", "ledger", "redis", "role", "jwt-secret-file", "jwks", "limits-user-rate", "log-level"} {
		if !flags[want] {
			t.Errorf("the flag --%s is gone", want)
		}
	}
}

func TestPrecedence(t *testing.T) {
	const file = "limits: {user_rate: 1}\nlisten: file:1\n"
	env := []string{"LIKEWISE_LIMITS_USER_RATE=2", "LIKEWISE_DATA_DIR=from-env", "HOME=/root"}
	for _, tt := range []struct {
		name, file string
		env, args  []string
		rate       float64
		source     string
	}{
		{"default", "", nil, nil, 5, ""},
		{"file", file, nil, nil, 1, "c.yaml:1"},
		{"environment over file", file, env, nil, 2, "env LIKEWISE_LIMITS_USER_RATE"},
		{"flag over all", file, env, []string{"--limits-user-rate=3"}, 3, "flag --limits-user-rate"},
		{"bare flag", "", nil, []string{"--pprof"}, 5, ""},
		{"flag with the default's value", file, env, []string{"--limits-user-rate=5"}, 5, "flag --limits-user-rate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := load(t, tt.file, tt.env, tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if want := slices.Contains(tt.args, "--pprof"); e.Pprof != want {
				t.Errorf("pprof = %v", e.Pprof)
			}
			if e.Limits.UserRate != tt.rate || !strings.HasSuffix(e.source["limits.user_rate"], tt.source) {
				t.Errorf("user_rate = %v from %q, want %v from %q", e.Limits.UserRate, e.source["limits.user_rate"], tt.rate, tt.source)
			}
			if tt.file != "" && e.Listen != "file:1" {
				t.Errorf("listen = %q: a layer above the file hid what it does not set", e.Listen)
			}
		})
	}
}

func TestEveryKindInEveryPlace(t *testing.T) {
	want := DefaultConfig()
	want.AnonymousReads, want.Pprof = false, true
	want.CORSOrigins = []string{"https://a.example", "http://b.example:8000"}
	want.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32")}
	want.Limits.UserRate, want.Limits.UserBurst = 2.5, 7
	want.Limits.ReadTimeout = 90 * time.Second
	want.Pebble.CacheBytes = 3 << 30
	want.Log.Level, want.Log.Format = slog.LevelDebug, "json"
	want.JWT.SecretFile = "secret"
	want.Ledger = URLs{"postgres://a:p@h1:1,h2:2/x?sslmode=require", "postgres://b@h3/x"}
	want.Redis = "redis://:p@h1:1,h2:2"

	file := `
anonymous_reads: false
pprof: true
cors_origins: [https://a.example, "http://b.example:8000"]
trusted_proxies:
  - 10.1.2.3/8
  - 192.0.2.7
limits:
  user_rate: 2.5
  user_burst: 7
  read_timeout: 1m30s
pebble: {cache_bytes: 3GiB}
log: {level: DEBUG, format: json}
jwt: {secret_file: secret}
ledger: ["postgres://a:p@h1:1,h2:2/x?sslmode=require", postgres://b@h3/x]
redis: redis://:p@h1:1,h2:2
`
	args := []string{
		"--anonymous-reads=false", "--pprof=true", "--cors-origins=https://a.example,http://b.example:8000",
		"--trusted-proxies=10.1.2.3/8, 192.0.2.7", "--limits-user-rate=2.5", "--limits-user-burst=7",
		"--limits-read-timeout=90s", "--pebble-cache-bytes=3072MiB", "--log-level=debug", "--log-format=json",
		"--jwt-secret-file=secret", "--ledger=postgres://a:p@h1:1,h2:2/x?sslmode=require, postgres://b@h3/x", "--redis= redis://:p@h1:1,h2:2",
	}
	var env []string
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		env = append(env, "LIKEWISE_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+value)
	}
	for _, tt := range []struct {
		name, file string
		env, args  []string
	}{{"file", file, nil, nil}, {"environment", "", env, nil}, {"flags", "", nil, args}} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := load(t, tt.file, tt.env, tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, e.Config, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		env, args  []string
		want       []string // parts of the error
	}{
		{name: "unknown key", file: "\nlisten: :1\nlimits:\n  user_rat: 3\n", want: []string{"c.yaml:4", "limits.user_rat", "did you mean limits.user_rate?"}},
		{name: "unknown key like nothing", file: "frobnicate: 3", want: []string{"c.yaml:1", "frobnicate", "docs/config.md"}},
		{name: "unknown variable", env: []string{"LIKEWISE_LISTNE=:1"}, want: []string{"LIKEWISE_LISTNE", "did you mean LIKEWISE_LISTEN?"}},
		{name: "unknown flag", args: []string{"--listne=:1"}, want: []string{"listne"}},
		{name: "key twice", file: "listen: :1\nlisten: :2\n", want: []string{"c.yaml:2", "twice"}},
		{name: "section twice", file: "log: {level: info}\nlog: {format: json}\n", want: []string{"c.yaml:2", "twice"}},
		{name: "section without settings", file: "limits: 5\n", want: []string{"c.yaml:1", "limits must hold settings"}},
		{name: "list as file", file: "- a\n", want: []string{"the file must hold settings"}},
		{name: "two documents", file: "listen: :1\n---\nlisten: :2\n", want: []string{"more than one"}},
		{name: "broken YAML", file: "listen: [", want: []string{"c.yaml"}},
		{name: "no value", file: "jwks:\n", want: []string{"jwks", "no value"}},
		{name: "list for a word", file: "listen: [a]\n", want: []string{"listen", "single string"}},
		{name: "alias", file: "listen: &x a:1\nadmin_listen: *x\n", want: []string{"admin_listen", "single string"}},
		{name: "not a number", env: []string{"LIKEWISE_LIMITS_USER_BURST=ten"}, want: []string{"limits.user_burst", "whole number", `"ten"`}},
		{name: "NaN", env: []string{"LIKEWISE_LIMITS_USER_RATE=NaN"}, want: []string{"limits.user_rate", "number"}},
		{name: "no unit", file: "jwt: {leeway: 30}", want: []string{"jwt.leeway", "duration with a unit"}},
		{name: "size", args: []string{"--memory-limit=9999999PiB"}, want: []string{"memory-limit", "64MiB"}},
		{name: "network", file: "trusted_proxies: [nowhere]", want: []string{"trusted_proxies", `"nowhere" is neither`}},
		{name: "too large", file: "limits: {page_max: 101}", want: []string{"limits.page_max: 101 is too large; the most is 100"}},
		{name: "too small", file: "jwt: {leeway: -1s}", want: []string{"jwt.leeway: -1s is too small; the least is 0s"}},
		{name: "leeway", file: "jwt: {leeway: 61s}", want: []string{"jwt.leeway: 1m1s is too large; the most is 60s"}},
		{name: "word", file: "log: {format: xml}", want: []string{"log.format", `"xml"`, "auto, text, json"}},
		{name: "level", file: "log: {level: loud}", want: []string{"log.level", "loud"}},
		{name: "address", file: "listen: localhost\n", want: []string{"listen", `"localhost"`, "host:port"}},
		{name: "same address", file: "listen: :1\nadmin_listen: :1\n", want: []string{"admin_listen", "another port"}},
		{name: "other role", args: []string{"--role=worker"}, want: []string{"role", `"worker"`, "all, api, aggregator, reconciler"}},
		{name: "connections", file: "postgres: {writers: 15}", want: []string{"postgres.max_connections: 16", "postgres.writers, 15"}},
		{name: "password as an address", args: []string{"--listen=redis://u:hunter2@h"}, want: []string{"listen", "redis://u:***@h"}},
		{name: "no directory", args: []string{"--data-dir="}, want: []string{"data_dir"}},
		{name: "some origins", file: `cors_origins: ["*.example.org"]`, want: []string{"cors_origins", `"*.example.org"`}},
		{name: "origin with path", file: "cors_origins: [https://a.example/]", want: []string{"cors_origins"}},
		{name: "key URL", file: "jwks: ftp://a/b", want: []string{"jwks", "ftp://a/b"}},
		{name: "trace URL", file: "trace_endpoint: localhost:4318", want: []string{"trace_endpoint", "http://127.0.0.1:4318"}},
		{name: "page", file: "limits: {page_max: 20}", want: []string{"limits.page_default: 50", "limits.page_max, 20"}},
		{name: "timeouts", file: "limits: {read_timeout: 1s}", want: []string{"limits.read_header_timeout"}},
		{name: "sizes", file: "limits: {max_url_bytes: 17KiB}", want: []string{"limits.max_url_bytes", "limits.max_header_bytes"}},
		{name: "times", file: "limits: {request_timeout: 61s}", want: []string{"limits.request_timeout", "limits.write_timeout"}},
		{name: "age of keys", file: "jwt: {jwks_max_age: 9m59s}", want: []string{"jwt.jwks_max_age", "jwt.jwks_refresh"}},
		{name: "ages", file: "counts: {expire_after: 1ms}", want: []string{"counts.refresh_after"}},
		{name: "all at once", file: "a: 1\nb: 2\n", env: []string{"LIKEWISE_C=3"}, want: []string{`"a"`, `"b"`, "LIKEWISE_C"}},
		{name: "missing file", env: []string{"LIKEWISE_CONFIG=/nowhere/c.yaml"}, want: []string{"/nowhere/c.yaml", "--config"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.file, tt.env, tt.args)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error lacks %q:\n%v", part, err)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

func TestForeignVariablesAreLeftAlone(t *testing.T) {
	env := []string{
		"LIKEWISE_TOKEN=x", "LIKEWISE_URL=http://h", "LIKEWISE_HEAVY=1", "LIKEWISE_SERVICE_HOST=10.0.0.1",
		"LIKEWISE_SERVICE_PORT=8080", "LIKEWISE_SERVICE_PORT_HTTP=8080", "LIKEWISE_PORT=tcp://10.0.0.1:8080",
		"LIKEWISE_PORT_8080_TCP_ADDR=10.0.0.1", "LIKEWISE_ADMIN_PORT_9090_TCP=tcp://10.0.0.1:9090", "XLIKEWISE_Q=1",
	}
	if _, err := load(t, "", env, nil); err != nil {
		t.Error(err)
	}
}

func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "config.md")
	if *update {
		if err := os.WriteFile(path, []byte(Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Reference(), string(got)); diff != "" {
		t.Errorf("docs/config.md is out of date; rewrite it with `go test ./internal/config -update`:\n%s", diff)
	}
}

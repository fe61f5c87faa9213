package config

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrintNamesSources(t *testing.T) {
	e, err := load(t, "limits: {user_rate: 2}", []string{"LIKEWISE_LOG_LEVEL=warn"}, []string{"--cors-origins=https://a.example,https://b.example"})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := e.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`listen: "127.0.0.1:8080" # default`,
		`cors_origins: ["https://a.example", "https://b.example"] # flag --cors-origins`,
		`  level: warn # env LIKEWISE_LOG_LEVEL`,
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("no line %q in:\n%s", line, out.String())
		}
	}
	if !strings.Contains(out.String(), "c.yaml:1\n") {
		t.Errorf("the file's line is not named:\n%s", out.String())
	}
}

func TestSecretsAreMasked(t *testing.T) {
	e, err := load(t, "", nil, []string{"--jwks=https://me:hunter2@id.example/keys?token=hunter2", "--trace-endpoint=http://x:hunter2@t:4318"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := e.Print(&out); err != nil {
		t.Fatal(err)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("starting", "config", e)
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("a secret is shown:\n%s", out.String())
	}
	if want := "https://me:***@id.example/keys?***"; strings.Count(out.String(), want) != 2 {
		t.Errorf("%q is not shown twice:\n%s", want, out.String())
	}
}

// FuzzConfigYAML checks that no file makes Load panic, and that what Print writes
// of an accepted configuration means the same configuration.
func FuzzConfigYAML(f *testing.F) {
	for _, text := range []string{
		"", "# nothing\n", "---\n", "listen: :1\n", "limits: {user_rate: 1e3, max_body_bytes: 2MiB}\n",
		"trusted_proxies: [10.0.0.0/8, '::1']\n", "log:\n  level: error+2\n", "cors_origins: https://a.example\n",
		"jwt: {issuer: \"a\\tb # c\", leeway: 1.5s}\n", "a: &a [*a]\n", "<<: {listen: x}\n", "? {a: b}\n: c\n",
		"ledger: [postgres://h/a, 'postgresql://u@[::1],h2:1/b']\njwt: {secret_file: x}\nredis: redis://h:1,h2:2\nrole: api\n",
		"mirror: {tables: {posts: {url: postgres://h/d, table: a.b, id_column: \"\\x7f\", count_column: n}}}\n",
		"limits: {limits: {limits: {}}}\n", "listen: !!binary aGk=\n", "pebble: {queue_length: 0x10}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first := Effective{Config: DefaultConfig(), source: map[string]string{}}
		if first.loadYAML("f", text) != nil || first.Validate() != nil {
			return
		}
		var out bytes.Buffer
		if err := first.Print(&out); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "***") {
			return
		}
		second := Effective{Config: DefaultConfig(), source: map[string]string{}}
		if err := second.loadYAML("f", out.Bytes()); err != nil {
			t.Fatalf("%v\nprinted:\n%s", err, out.String())
		}
		if diff := cmp.Diff(first.Config, second.Config, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("read back differently:\n%s\nprinted:\n%s", diff, out.String())
		}
	})
}

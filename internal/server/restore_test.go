package server

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/internal/transfer"
)

// exported returns all likes of a directory without a server.
func exported(t *testing.T, cfg config.Config) string {
	t.Helper()
	facts, err := OpenLedger(t.Context(), cfg, testOptions().Log)
	if err != nil {
		t.Fatal(err)
	}
	lines := transfer.Lines(facts.Export(t.Context()))
	text, err := io.ReadAll(lines)
	if err := errors.Join(err, lines.Close(), facts.Close()); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// backup is a backup of a running server that went on, and its export.
func backup(t *testing.T) (dir, want string) {
	t.Helper()
	cfg := testConfig(t)
	r := start(t, cfg, testOptions())
	admin := r.token("op", auth.ScopeAdmin)
	for _, user := range []like.User{"ann", "bob"} {
		r.want(200, "", "PUT", r.api+"/v1/posts/1/like", r.token(user), "")
	}
	status, want, err := r.call("GET", r.admin+"/admin/v1/export", admin, "")
	if err != nil || status != 200 || want == "" {
		t.Fatalf("export: %d %s, error %v", status, want, err)
	}
	dir = filepath.Join(t.TempDir(), "backup")
	r.want(200, dir, "POST", r.admin+"/admin/v1/backup", admin, `{"dir":"`+dir+`"}`)
	r.want(200, "", "PUT", r.api+"/v1/posts/1/like", r.token("later"), "")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	return dir, want
}

func TestRestore(t *testing.T) {
	dir, want := backup(t)
	cfg := testConfig(t)
	key := filepath.Join(cfg.DataDir, "token.key")
	leftover := filepath.Join(cfg.DataDir, "ledger.restoring", "half")
	for _, path := range []string{key, leftover, filepath.Join(cfg.DataDir, "ledger", "x")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{key, leftover} {
		if err := os.WriteFile(path, []byte("0123456789abcdef0123456789abcdef"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Restore(t.Context(), cfg, testOptions(), dir); err != nil {
		t.Fatal(err)
	}
	if got := exported(t, cfg); got != want {
		t.Errorf("restored:\n%swant:\n%s", got, want)
	}
	if text, err := os.ReadFile(key); err != nil || string(text) != "0123456789abcdef0123456789abcdef" {
		t.Errorf("the key of the directory is now %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Dir(leftover)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an attempt is left over: %v", err)
	}
	if err := Restore(t.Context(), cfg, testOptions(), dir); !errors.Is(err, like.ErrInvalid) {
		t.Errorf("a second restore over it: %v", err)
	}
}

func TestRestoreOfADamagedBackup(t *testing.T) {
	dir, _ := backup(t)
	manifests, err := filepath.Glob(filepath.Join(dir, "db", "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("manifests %v, %v", manifests, err)
	}
	if err := os.Truncate(manifests[0], 3); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t)
	if err := Restore(t.Context(), cfg, testOptions(), dir); err == nil {
		t.Error("a damaged backup was restored")
	}
	if _, err := os.Stat(ledgerDir(cfg)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it got the place of the store: %v", err)
	}
}

func TestRestoreOfNoBackup(t *testing.T) {
	if err := Restore(t.Context(), testConfig(t), testOptions(), t.TempDir()); !errors.Is(err, like.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

func TestReconcileOffline(t *testing.T) {
	cfg := testConfig(t)
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	sum, err := ReconcileOffline(t.Context(), cfg, testOptions().Log, true, func(ledger.Audit) { t.Error("drift found") })
	if err != nil || sum != (transfer.Tally{}) {
		t.Errorf("tally %+v, error %v", sum, err)
	}
}

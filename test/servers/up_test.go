package servers_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"likewise/test/servers"
)

// upDir returns the name of a directory for servers that end with this process,
// which those of Up else do not.
func upDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "it")
	leash, err := servers.Watch(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leash.Close() })
	return dir
}

func TestUpAndDown(t *testing.T) {
	t.Parallel()
	servers.Redis(t) // skips where there is none
	dir := upDir(t)
	env, err := servers.Up(t.Context(), dir, "redis")
	if err != nil {
		t.Fatal(err)
	}
	address, ok := strings.CutPrefix(strings.Join(env, " "), "LIKEWISE_REDIS=redis://")
	if !ok {
		t.Fatalf("settings are %q", env)
	}
	dial(t, address).ping(t)
	if _, err := servers.Up(t.Context(), dir, "redis"); err == nil || !strings.Contains(err.Error(), "test/servers/down") {
		t.Errorf("a second start gave %v", err)
	}
	dial(t, address).ping(t)
	if out, err := exec.Command("./down", dir).CombinedOutput(); err != nil {
		t.Fatalf("down: %v\n%s", err, out)
	}
	eventually(t, "the server has ended", func() bool { // the system closes its port last
		_, err := net.Dial("tcp", address)
		return err != nil
	})
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory is left")
	}
}

func TestUpFailsWhole(t *testing.T) {
	t.Parallel()
	servers.Redis(t)
	dir := upDir(t)
	env, err := servers.Up(t.Context(), dir, "redis", "mysql")
	if err == nil || env != nil || !slices.ContainsFunc(servers.Kinds, func(k string) bool { return strings.Contains(err.Error(), k) }) {
		t.Errorf("settings %q, error %v", env, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory is left")
	}
}

// An old file with a process id must not hurt the process that has it now.
func TestDownLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	servers.Redis(t)
	other := exec.Command("cat")
	stdin, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	room := filepath.Join(dir, "redis-1")
	if err = os.Mkdir(room, 0o700); err == nil {
		err = os.WriteFile(filepath.Join(room, "pid"), fmt.Appendf(nil, "%d 9\n", other.Process.Pid), 0o600)
	}
	if err == nil {
		err = exec.Command("./down", dir).Run()
	}
	if err != nil {
		t.Error(err)
	}
	stdin.Close()
	if err := other.Wait(); err != nil {
		t.Errorf("another process was ended: %v", err)
	}
}

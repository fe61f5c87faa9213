package servers_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"likewise/test/servers"
)

// up starts a Redis below a directory and returns its address. It ends with this
// process at the latest, which what Up starts else does not.
func up(t *testing.T, dir string, more ...string) (address string, err error) {
	t.Helper()
	leash, err := servers.Watch(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		takeDown(t, dir) // while it is there: the test's directory goes next
		leash.Close()
	})
	env, err := servers.Up(t.Context(), dir, append([]string{"redis"}, more...)...)
	return strings.TrimPrefix(strings.Join(env, " "), "LIKEWISE_REDIS=redis://"), err
}

func takeDown(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command("./down", dir).CombinedOutput(); err != nil {
		t.Fatalf("down: %v\n%s", err, out)
	}
}

func TestUpAndDown(t *testing.T) {
	t.Parallel()
	servers.Redis(t) // skips where there is none
	dir := filepath.Join(t.TempDir(), "it")
	address, err := up(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	dial(t, address).ping(t)
	if _, err := servers.Up(t.Context(), dir, "redis"); err == nil || !strings.Contains(err.Error(), "test/servers/down") {
		t.Errorf("a second start gave %v", err)
	}
	dial(t, address).ping(t)
	takeDown(t, dir)
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
	dir := filepath.Join(t.TempDir(), "it")
	address, err := up(t, dir, "mysql")
	if err == nil || address != "" || !strings.Contains(err.Error(), servers.Kinds[0]) {
		t.Errorf("started at %q, error %v", address, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory is left")
	}
}

// Somebody may look at the data of a server, or keep servers in a directory of a
// similar name.
func TestDownLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	servers.Redis(t)
	dir := filepath.Join(t.TempDir(), "it")
	if _, err := up(t, dir); err != nil {
		t.Fatal(err)
	}
	similar, err := up(t, dir+"-2")
	if err != nil {
		t.Fatal(err)
	}
	looker := exec.Command("cat")
	looker.Dir = filepath.Join(dir, "redis-1")
	stdin, err := looker.StdinPipe()
	if err == nil {
		err = looker.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	takeDown(t, dir)
	dial(t, similar).ping(t)
	stdin.Close()
	if err := looker.Wait(); err != nil {
		t.Errorf("who looked on was ended: %v", err)
	}
}

package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"likewise/test/harness"
)

// childEnv makes a test of this binary be the process that is killed.
const childEnv = "LIKEWISE_SERVERS_CHILD"

func TestServersEndWithTheirProcess(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		r := Redis(t)
		r.Freeze(t, 0) // the hardest to end
		os.Stdout.WriteString("\n" + r.Addresses()[0] + "\n")
		select {}
	}
	t.Parallel()
	Redis(t) // skips where there is none
	temp := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), childEnv+"=1", "TMPDIR="+temp)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines, address := bufio.NewScanner(out), ""
	for !strings.HasPrefix(address, "127.0.0.1:") && lines.Scan() {
		address = lines.Text()
	}
	conn, err := net.Dial("tcp", address) // frozen, and its port open
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	err = poll(t.Context(), func(context.Context) error {
		if left, err := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 || err != nil {
			return errors.New("a directory is left")
		}
		if _, err := net.Dial("tcp", address); err == nil {
			return errors.New("the server still runs")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPortsThatAreTaken(t *testing.T) {
	t.Parallel()
	first := Redis(t)
	h, err := guarded()
	if err != nil {
		t.Fatal(err)
	}
	var ports []int
	err = onFreePort(0, func(port int) error {
		if ports = append(ports, port); len(ports) == 1 {
			port = first.nodes[0].port // taken after it was found free
		}
		dir, err := h.room("redis")
		if err != nil {
			return err
		}
		n := &redisNode{port: port, proc: &process{name: "Redis", dir: dir}}
		n.proc.argv = []string{"redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1"}
		if err := n.proc.start(t.Context(), n.ready); err != nil {
			return err
		}
		return n.proc.kill(t.Context())
	})
	if err != nil || len(ports) != 2 {
		t.Errorf("ports %v were tried: %v; want two", ports, err)
	}
}

func TestWhatMayBeAbsent(t *testing.T) {
	absent := notInstalled("redis", "redis-server")
	for _, tt := range []struct {
		name, require, heavy, maySkip string
		err                           error
		want                          string
	}{
		{"there", "redis", "1", "", nil, ""},
		{"absent", "", "", "", absent, "skipped: redis is not installed (Debian: apt-get install redis-server)"},
		{"absent, another one required", "postgres,pgbouncer", "", "", absent, "skipped"},
		{"absent and required", "postgres, redis", "", "1", absent, "failed: required by LIKEWISE_REQUIRE: redis is not installed"},
		{"absent at full size", "", "1", "", absent, "failed: required by LIKEWISE_HEAVY"},
		{"absent at full size, excused", "", "1", "1", absent, "skipped"},
		{"broken", "", "", "1", errors.New("no space left"), "failed: no space left"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(RequireEnv, tt.require)
			t.Setenv(harness.HeavyEnv, tt.heavy)
			t.Setenv(harness.MaySkipEnv, tt.maySkip)
			var told judge
			check(&told, tt.err)
			if got := told.first(); tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// judge notes how a test ends.
type judge struct {
	testing.TB
	verdicts []string
}

func (*judge) Helper() {}
func (j *judge) first() string {
	return strings.Join(j.verdicts[:min(1, len(j.verdicts))], "")
}
func (j *judge) Fatal(args ...any) { j.Fatalf("%v", args...) }
func (j *judge) Fatalf(format string, args ...any) {
	j.verdicts = append(j.verdicts, "failed: "+fmt.Sprintf(format, args...))
}

func (j *judge) Skipf(format string, args ...any) {
	j.verdicts = append(j.verdicts, fmt.Sprintf(format, args...))
}

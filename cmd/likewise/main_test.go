package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"likewise": main})
}

// TestCommandLine runs the scripts of testdata. Each is a session at a shell, with
// what the program must answer; see the testscript package for the language.
func TestCommandLine(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"LISTEN", "ADMIN_LISTEN"} {
				addr, err := freeAddress()
				if err != nil {
					return err
				}
				env.Setenv("LIKEWISE_"+name, addr)
			}
			env.Setenv("LIKEWISE_DATA_DIR", filepath.Join(env.WorkDir, "data"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"ready": ready,
			"exits": exits,
		},
	})
}

var lastPort atomic.Int64 // the scripts run side by side

// freeAddress is a loopback address that nobody listens on, below the range from
// which systems take the ports of outgoing connections.
func freeAddress() (string, error) {
	lastPort.CompareAndSwap(0, int64(10_000+os.Getpid()%10_000))
	for {
		port := lastPort.Add(1)
		if port > 32_000 {
			return "", errors.New("no free port")
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
}

// ready waits until the server of the script is ready.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: ready")
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("not asked")
	for range 3000 {
		<-tick.C
		res, err := http.Get("http://" + ts.Getenv("LIKEWISE_ADMIN_LISTEN") + "/readyz")
		if err != nil {
			last = err
			continue
		}
		res.Body.Close()
		if last = errors.New(res.Status); res.StatusCode == http.StatusOK {
			return
		}
	}
	ts.Fatalf("the server is not ready: %v", last)
}

// exits runs a command and checks its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENT…]")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code, err = exit.ExitCode(), nil
	}
	if err != nil || strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s exited with %d, error %v; want %s", args[1], code, err, args[0])
	}
}

// TestHelp walks all commands and shows that each explains itself.
func TestHelp(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Example == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: needs a short description without a full stop, and an example", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: the flag --%s has no description", cmd.CommandPath(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
}

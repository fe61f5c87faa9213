package move

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"likewise/test/harness"
)

// mover is a running `likewise move`.
type mover struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

// start starts a mover, which is killed when the test ends.
func start(t *testing.T, args []string) *mover {
	t.Helper()
	m := &mover{t: t, cmd: exec.Command(harness.Binary(t), args...), done: make(chan struct{})}
	m.cmd.Stdout, m.cmd.Stderr = m, m
	m.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LIKEWISE_") })
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_ = m.cmd.Wait()
		close(m.done)
	})
	t.Cleanup(func() {
		_ = m.cmd.Process.Kill()
		waiting.Wait()
	})
	return m
}

// Write keeps what the mover says.
func (m *mover) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.out.Write(b)
}

func (m *mover) output() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.out.String()
}

// waitFor waits until the mover has said something.
func (m *mover) waitFor(text string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 3*time.Minute)
	defer cancel()
	err := harness.Poll(ctx, time.Millisecond, func() (bool, error) {
		if strings.Contains(m.output(), text) {
			return true, nil
		}
		select {
		case <-m.done:
			return false, errEnded
		default:
			return false, nil
		}
	})
	if err != nil {
		m.t.Fatalf("waiting for %q: %v\n%s", text, err, m.output())
	}
}

func (m *mover) kill() {
	_ = m.cmd.Process.Kill()
	<-m.done
}

func (m *mover) interrupt() {
	m.t.Helper()
	if err := m.cmd.Process.Signal(os.Interrupt); err != nil {
		m.t.Fatal(err)
	}
}

// wait returns the exit code.
func (m *mover) wait() int {
	m.t.Helper()
	select {
	case <-m.done:
	case <-time.After(2 * time.Minute):
		m.t.Fatalf("the mover goes on\n%s", m.output())
	}
	return m.cmd.ProcessState.ExitCode()
}

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// NodeConfig says how to start one process.
type NodeConfig struct {
	Binary  string   // the program; default: the built one
	DataDir string   // default: a new directory of the test
	Keys    *Keys    // signing key that the node is given; nil lets it make one
	Flags   []string // more flags of serve
	Wrap    []string // command put in front of the program, which it must become
}

// Node is one process of the service with fixed addresses and one data
// directory, over any number of starts. It is used by one goroutine; the log and
// the counters that others may want are read after a stop.
type Node struct {
	URL      string // of the public listener
	AdminURL string // of the admin listener
	DataDir  string

	t     testing.TB
	cfg   NodeConfig
	args  []string
	extra []string // flags of Use
	log   string
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process of cmd is gone

	logged int // bytes of the log before the last start
}

const (
	readyWithin = time.Minute      // without manual repair, even after a full disk
	stopWithin  = 10 * time.Second // the promised length of a graceful stop
	slowStop    = 30 * time.Second // where others use the machine too, and nothing was cut off
)

// NewNode prepares a node; Start starts it. When the test ends a process that
// still runs is killed, and after a failure the log is kept as an artifact.
func NewNode(t testing.TB, cfg NodeConfig) *Node {
	t.Helper()
	if cfg.Binary == "" {
		cfg.Binary = Binary(t)
	}
	if cfg.DataDir == "" {
		cfg.DataDir = filepath.Join(t.TempDir(), "data")
	}
	public, admin := freeAddress(t), freeAddress(t)
	n := &Node{
		URL:      "http://" + public,
		AdminURL: "http://" + admin,
		DataDir:  cfg.DataDir,
		t:        t,
		cfg:      cfg,
		log:      filepath.Join(t.TempDir(), "serve.log"),
	}
	n.args = []string{
		"serve", "--listen", public, "--admin-listen", admin, "--data-dir", cfg.DataDir, "--limits-user-read-rate", "0",
		// A machine that others use too may hold a sync or a read for seconds; that is not
		// what is tested.
		"--pebble-queue-age", "30s", "--postgres-queue-age", "30s", "--limits-request-timeout", "45s",
		"--counts-load-timeout", "5s",
	}
	if cfg.Keys != nil {
		n.args = append(n.args, "--jwt-secret-file", cfg.Keys.File)
	}
	n.args = append(n.args, cfg.Flags...)
	t.Cleanup(n.cleanup)
	return n
}

// Use makes later starts run another program, with more flags.
func (n *Node) Use(binary string, flags ...string) {
	n.cfg.Binary = binary
	n.extra = flags
}

// Start starts the process without waiting for it to be ready.
func (n *Node) Start() {
	n.t.Helper()
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	if info, err := log.Stat(); err == nil {
		n.logged = int(info.Size())
	}
	argv := slices.Concat(n.cfg.Wrap, []string{n.cfg.Binary}, n.args, n.extra)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "LIKEWISE_") // settings of tests, not of the node
	})
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		n.t.Fatalf("start the program: %v", err)
	}
	done := make(chan struct{})
	n.cmd, n.done = cmd, done
	go func() { // ends with the process, which cleanup kills and waits for
		_ = cmd.Wait()
		close(done)
	}()
}

// StartReady starts the process, waits until it is ready, and returns how long
// that took.
func (n *Node) StartReady(ctx context.Context) time.Duration {
	n.t.Helper()
	begin := time.Now()
	n.Start()
	if err := n.WaitReady(ctx); err != nil {
		n.t.Fatalf("%v\n%s", err, n.LogTail())
	}
	return time.Since(begin)
}

// WaitReady asks /readyz until it answers 200, the process ends, or a minute passed.
func (n *Node) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	last := errors.New("not asked")
	err := Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		select {
		case <-n.done:
			return false, fmt.Errorf("the program ended with %v before it was ready", n.cmd.ProcessState)
		default:
		}
		res, err := client.Get(n.AdminURL + "/readyz")
		if err != nil {
			last = err
			return false, nil
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		last = fmt.Errorf("%s: %s", res.Status, body)
		return res.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("not ready: %w (last answer: %v)", err, last)
	}
	return nil
}

// Ready reports whether the node says that it is ready.
func (n *Node) Ready(ctx context.Context) bool {
	n.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.AdminURL+"/readyz", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// Signal sends a signal to the process.
func (n *Node) Signal(sig os.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		n.t.Fatalf("send %v: %v", sig, err)
	}
}

// Stop sends SIGTERM, and fails the test unless the process then ends as
// [Node.WaitStopped] wants.
func (n *Node) Stop() {
	n.t.Helper()
	n.Signal(syscall.SIGTERM)
	n.WaitStopped()
}

// WaitStopped fails the test unless the process ends with code 0 within 10 s. A slow
// machine may take longer, but not the requests and streams that are waited for.
func (n *Node) WaitStopped() {
	n.t.Helper()
	begin := time.Now()
	select {
	case <-n.done:
	case <-time.After(slowStop):
		n.t.Fatalf("the program still runs %v after SIGTERM\n%s", slowStop, n.LogTail())
	}
	if took := time.Since(begin); took > stopWithin && strings.Contains(n.logOfRun(), "cut off at the deadline") {
		n.t.Fatalf("the program ended %v after SIGTERM\n%s", took, n.LogTail())
	}
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		n.t.Fatalf("the program ended with %v after SIGTERM\n%s", n.cmd.ProcessState, n.LogTail())
	}
}

// logOfRun returns what the process has written since its last start.
func (n *Node) logOfRun() string {
	b, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	return string(b[min(n.logged, len(b)):])
}

// Kill kills the process as power loss would, and waits until it is gone.
func (n *Node) Kill() {
	n.t.Helper()
	n.Signal(os.Kill)
	<-n.done
}

// Restart stops the process gracefully, starts it again and waits until ready.
func (n *Node) Restart(ctx context.Context) {
	n.t.Helper()
	n.Stop()
	n.StartReady(ctx)
}

// Done is closed when the process of the last start is gone.
func (n *Node) Done() <-chan struct{} { return n.done }

// PID returns the process id of the last start.
func (n *Node) PID() int { return n.cmd.Process.Pid }

// RSS returns the resident memory of the process in bytes, or 0 where the
// system does not tell.
func (n *Node) RSS() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.PID()))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}

// LogTail returns the last lines of what the process wrote.
func (n *Node) LogTail() string {
	b, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	const limit = 4 << 10
	if len(b) > limit {
		b = append([]byte("...\n"), b[len(b)-limit:]...)
	}
	return "log:\n" + string(b)
}

func (n *Node) cleanup() {
	if n.cmd != nil {
		_ = n.cmd.Process.Kill()
		<-n.done
	}
	if !n.t.Failed() {
		return
	}
	kept := filepath.Join(n.t.ArtifactDir(), "serve-"+filepath.Base(n.URL)+".log")
	if b, err := os.ReadFile(n.log); err == nil && os.WriteFile(kept, b, 0o600) == nil {
		n.t.Logf("log of the program kept in %s", kept)
	}
}

// freeAddress returns a loopback address that nothing listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// Poll calls try at once and then at every interval until it reports true or an
// error, or the context ends.
func Poll(ctx context.Context, every time.Duration, try func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if ok, err := try(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

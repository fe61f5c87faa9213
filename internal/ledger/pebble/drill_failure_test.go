package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"likewise/internal/like"
)

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

func isWrite(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileWriteAt
}

// once is an operation that fails one time, when armed.
type once struct {
	match func(op errorfs.Op) bool
	err   error
	armed atomic.Bool
	fired atomic.Int64
	acked atomic.Int64 // calls that were acknowledged so far
	until int64        // of them, before the fault
}

func (o *once) hook(op errorfs.Op) error {
	if o.match(op) && o.armed.CompareAndSwap(true, false) {
		o.until = o.acked.Load()
		o.fired.Add(1)
		return o.err
	}
	return nil
}

// TestDrillFailedOnce is drill 6: the disk refuses one sync or write of the log or the
// marker, and works again at once. Nothing is acknowledged any more, because what the
// kernel dropped it does not report twice.
func TestDrillFailedOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		file string
		kind func(op errorfs.Op) bool
		err  error
	}{
		{"sync of the log", ".log", isSync, syscall.EIO},
		{"write to the log", ".log", isWrite, syscall.ENOSPC},
		{"sync of the marker", markerName, isSync, syscall.EIO},
		{"write of the marker", markerName, isWrite, syscall.ENOSPC},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRand(drillSeed(t))
			mem := vfs.NewCrashableMem()
			fault := &once{err: tt.err, match: func(op errorfs.Op) bool {
				return strings.HasSuffix(op.Path, tt.file) && tt.kind(op)
			}}
			var fatal atomic.Int64
			cfg := drillConfig(faultFS(mem, fault.hook))
			cfg.MemtableBytes = 1 << 20 // the log is written by likes only
			cfg.OnFatal = func(error) { fatal.Add(1) }
			l, err := open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			s := newScript(r, 60)
			arm := func(n int) {
				fault.acked.Store(int64(n))
				if n == 30 {
					fault.armed.Store(true)
				}
			}
			const window = 4
			if err := s.run(l, window, func() bool { return false }, arm); !errors.Is(err, like.ErrUnavailable) {
				t.Errorf("the calls under way got %v, want unavailable", err)
			}
			checkFailed(t, l)
			if err := l.Close(); !errors.Is(err, like.ErrUnavailable) {
				t.Errorf("Close: %v, want unavailable", err)
			}
			if fault.fired.Load() != 1 || fatal.Load() != 1 {
				t.Errorf("the fault fired %d times, OnFatal was called %d times; want 1 and 1", fault.fired.Load(), fatal.Load())
			}
			// An answer given before the fault may be counted after it.
			acked := fault.acked.Load()
			if acked < 30 || acked > fault.until+window {
				t.Errorf("%d calls were acknowledged, %d of them before the fault", acked, fault.until)
			}
			disk := mem.CrashClone(vfs.CrashCloneCfg{})
			if err := s.verify(drillConfig(disk), int(acked)); err != nil {
				t.Errorf("after the restart: %v", err)
			}
		})
	}
}

func checkFailed(t *testing.T, l *Ledger) {
	t.Helper()
	cmd := like.Command{Item: like.Item{Collection: "posts", ID: "late"}, User: "late", Op: like.OpLike}
	for range 3 {
		if _, err := l.Apply(t.Context(), cmd); !errors.Is(err, like.ErrUnavailable) {
			t.Errorf("a later call got %v, want unavailable", err)
		}
	}
	if err := l.Ready(t.Context()); !errors.Is(err, like.ErrUnavailable) {
		t.Errorf("Ready: %v, want unavailable", err)
	}
}

const childEnv = "DRILL_CHILD"

// TestDrillEngineGivesUp is drill 6 where the engine itself cannot go on: it gives up
// with its locks held, so the process ends. A second process plays it, on a real disk.
func TestDrillEngineGivesUp(t *testing.T) {
	if kind := os.Getenv(childEnv); kind != "" {
		engineGivesUp(t, kind, os.Getenv("DRILL_DIR"))
		return
	}
	for _, kind := range []string{"log", "manifest"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			child := exec.Command(os.Args[0], "-test.run=^TestDrillEngineGivesUp$")
			child.Env = append(os.Environ(), childEnv+"="+kind, "DRILL_DIR="+dir)
			out, err := child.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
				t.Fatalf("the process ended with %v, want exit status 1 from OnFatal\n%s", err, out)
			}
			acked := strings.Count(string(out), "acked\n")
			if acked == 0 || !bytes.Contains(out, []byte(syscall.ENOSPC.Error())) {
				t.Errorf("acknowledged %d calls, want some, and the disk's reason in\n%s", acked, out)
			}
			cfg := drillConfig(vfs.Default)
			cfg.Dir = dir
			l, err := open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			a, err := l.Audit(t.Context(), like.Item{Collection: "posts", ID: "1"}, false)
			if err != nil || a.Drift() || a.Facts < int64(acked*givesUpBatch) {
				t.Errorf("after the restart: %+v, %v; want at least %d facts and no drift", a, err, acked*givesUpBatch)
			}
		})
	}
}

const givesUpBatch = 20

// engineGivesUp likes until the disk refuses a new log or manifest edit.
func engineGivesUp(t *testing.T, kind, dir string) {
	var armed atomic.Bool
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		base := path.Base(op.Path)
		newLog := (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite) && path.Ext(base) == ".log"
		edit := isWrite(op) && strings.HasPrefix(base, manifestName)
		if armed.Load() && (kind == "log" && newLog || kind == "manifest" && edit) {
			return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	cfg := drillConfig(fs)
	cfg.Dir = dir
	cfg.OnFatal = func(err error) {
		fmt.Println("fatal", err)
		os.Exit(1)
	}
	l, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1000 {
		armed.Store(n > 5)
		cmds := make([]like.Command, givesUpBatch)
		for i := range cmds {
			user := like.User(fmt.Sprintf("u%d-%d", n, i))
			cmds[i] = like.Command{Item: like.Item{Collection: "posts", ID: "1"}, User: user, Op: like.OpLike}
		}
		if _, err := l.ApplyMany(t.Context(), cmds); err != nil {
			t.Fatal(err)
		}
		fmt.Println("acked")
	}
}

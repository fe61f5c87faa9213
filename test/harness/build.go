package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// HeavyEnv asks, with the value 1, for the full sizes of all tests.
const HeavyEnv = "LIKEWISE_HEAVY"

// BinaryEnv names a program to test instead of building one.
const BinaryEnv = "LIKEWISE_BIN"

// Heavy reports whether the full sizes were asked for.
func Heavy() bool { return os.Getenv(HeavyEnv) == "1" }

// Size returns full when the full sizes were asked for, else quick.
func Size[T any](quick, full T) T {
	if Heavy() {
		return full
	}
	return quick
}

// SkipUnlessHeavy skips a test that has no quick form.
func SkipUnlessHeavy(t testing.TB, why string) {
	t.Helper()
	if !Heavy() {
		t.Skipf("skipped: %s; set %s=1 to run it", why, HeavyEnv)
	}
}

// MaySkipEnv says, with the value 1, that this machine lacks something.
const MaySkipEnv = "LIKEWISE_MAY_SKIP"

// NotOffered ends a test that this machine or deployment cannot run. Under the
// full sizes nothing may be missing, so there it fails, unless it may be skipped.
func NotOffered(t testing.TB, format string, args ...any) {
	t.Helper()
	if Heavy() && os.Getenv(MaySkipEnv) != "1" {
		t.Fatalf("required by "+HeavyEnv+", unless "+MaySkipEnv+"=1: "+format, args...)
	}
	t.Skipf("skipped: "+format, args...)
}

// builder makes programs, each at most once per test process, in a directory that
// [Main] removes.
var builder struct {
	mu       sync.Mutex
	dir      string
	programs map[string]program // by package
}

type program struct {
	path string
	err  error
}

// Binary returns the path of the program, built at most once per test process.
// The caller's TestMain runs through [Main].
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(BinaryEnv); path != "" {
		return path
	}
	return Build(t, "./cmd/likewise")
}

// CLI runs a command of the program and returns its standard output, its
// standard error and its exit code.
func CLI(ctx context.Context, t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, Binary(t), args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("run %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Build returns the path of a main package of this module, named relative to its
// root, built as [Binary] is.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	builder.mu.Lock()
	defer builder.mu.Unlock()
	if builder.programs == nil {
		dir, err := os.MkdirTemp("", "likewise-test-")
		if err != nil {
			t.Fatal(err)
		}
		builder.dir, builder.programs = dir, map[string]program{}
	}
	built, ok := builder.programs[pkg]
	if !ok {
		built.path, built.err = build(builder.dir, pkg)
		builder.programs[pkg] = built
	}
	if built.err != nil {
		t.Fatalf("build %s: %v", pkg, built.err)
	}
	return built.path
}

func build(dir, pkg string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.Base(pkg))
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

// Root returns the directory of the module.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// Main runs the tests of a package and removes what they built.
func Main(m *testing.M) {
	code := m.Run()
	if builder.dir != "" {
		os.RemoveAll(builder.dir)
	}
	os.Exit(code)
}

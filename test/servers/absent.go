package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"likewise/test/harness"
)

// RequireEnv lists, separated by commas, the servers that must be there: of
// "postgres", "pgbouncer" and "redis". A test that lacks one of them fails.
const RequireEnv = "LIKEWISE_REQUIRE"

// absentError says that a server cannot be started on this machine.
type absentError struct {
	server string // as in RequireEnv
	why    string
}

func (e *absentError) Error() string { return e.why }

func notInstalled(server, debianPackage string) error {
	return &absentError{server, fmt.Sprintf("%s is not installed (Debian: apt-get install %s)", server, debianPackage)}
}

// check ends the test when a server could not be started.
func check(tb testing.TB, err error) {
	tb.Helper()
	absent, is := errors.AsType[*absentError](err)
	switch {
	case err == nil:
	case is && required(os.Getenv(RequireEnv), absent.server):
		tb.Fatalf("required by %s: %v", RequireEnv, err)
	case is:
		harness.NotOffered(tb, "%v", err)
	default:
		tb.Fatal(err)
	}
}

func required(list, server string) bool {
	return slices.Contains(strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }), server)
}

// program returns the path of a server's program, also when it is in a directory
// of the administrator, which users do not search.
func program(name string) (string, bool) {
	if path, err := exec.LookPath(name); err == nil {
		return path, true
	}
	path := filepath.Join("/usr/sbin", name)
	_, err := os.Stat(path)
	return path, err == nil
}

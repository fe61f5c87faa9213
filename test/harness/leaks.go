package harness

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// MainWithoutLeaks runs the tests of a package, and fails when a goroutine is left. It
// waits longer for them than goleak does: a closed client of Redis may sleep for a second
// before a last look at its nodes, and for five before it closes connections.
func MainWithoutLeaks(m *testing.M) {
	code := m.Run()
	err := goleak.Find()
	for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
		err = goleak.Find()
	}
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

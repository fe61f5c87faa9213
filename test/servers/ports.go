package servers

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"likewise/test/harness"
)

// freePort returns a loopback port that nothing listens on: the wanted one, when it
// is free and not 0.
func freePort(wanted int) (int, error) {
	if wanted != 0 {
		if l, err := net.Listen("tcp", addressOf(wanted)); err == nil {
			return wanted, l.Close()
		}
	}
	return harness.FreePort()
}

func addressOf(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// next returns the n-th port after the wanted one, or 0 when any will do.
func next(wanted, n int) int {
	if wanted == 0 {
		return 0
	}
	return wanted + n
}

// onFreePort calls start with a free port, and with another one when somebody took
// that before the server did.
func onFreePort(wanted int, start func(port int) error) error {
	var err error
	for range 5 {
		var port int
		if port, err = freePort(wanted); err != nil {
			return err
		}
		if err = start(port); !errors.Is(err, errPortTaken) {
			return err
		}
		wanted = 0
	}
	return fmt.Errorf("every port that was free was taken at once: %w", err)
}

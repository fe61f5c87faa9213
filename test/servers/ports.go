package servers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// freePort returns a loopback port that nothing listens on: the wanted one, when it
// is free and not 0. It stays below the range from which systems take the ports of
// outgoing connections, so that nobody takes it while its server is down.
func freePort(wanted int) (int, error) {
	for range 100 {
		if wanted == 0 {
			wanted = 10_000 + rand.IntN(20_000)
		}
		if l, err := net.Listen("tcp", addressOf(wanted)); err == nil {
			return wanted, l.Close()
		}
		wanted = 0
	}
	return 0, errors.New("no free port found")
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

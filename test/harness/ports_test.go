package harness

import (
	"net"
	"testing"
)

// TestPortsAreGivenOnce takes more than a block has, none of them twice, also while
// nothing listens on them.
func TestPortsAreGivenOnce(t *testing.T) {
	given := map[int]bool{}
	for range 2 * blockSize {
		port, err := FreePort()
		if err != nil || given[port] || port < firstPort || port >= lastPort {
			t.Fatalf("port %d, given before: %v; %v", port, given[port], err)
		}
		given[port] = true
	}
	for _, guard := range ports.guards {
		if _, err := net.Dial("tcp", guard.Addr().String()); err != nil {
			t.Errorf("a block is not held: %v", err)
		}
	}
}

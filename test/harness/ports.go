package harness

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come from blocks that belong to one test process each, so that no other one is
// given a port whose server is down. They lie below the range from which systems take
// the ports of outgoing connections, and above those of servers that people start.
const (
	firstPort = 17_000
	lastPort  = 30_000
	blockSize = 100
)

// ports are those of this process, which holds its blocks by listening on their first
// ports.
var ports struct {
	mu     sync.Mutex
	guards []net.Listener
	next   int
	end    int // of the newest block
}

// FreePort returns a loopback port that nothing listens on, another one at each call.
func FreePort() (int, error) {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for range 1000 {
		if ports.next == ports.end {
			takeBlock()
			continue
		}
		port := ports.next
		ports.next++
		if l, err := listen(port); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no free port found")
}

// takeBlock takes a random block, if nobody has it.
func takeBlock() {
	begin := firstPort + blockSize*rand.IntN((lastPort-firstPort)/blockSize)
	if guard, err := listen(begin); err == nil {
		ports.guards = append(ports.guards, guard)
		ports.next, ports.end = begin+1, begin+blockSize
	}
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

package harness

import (
	"context"
	"os"
	"syscall"
	"testing"
)

// Nodes are several processes of one service. Like a [Node] they are used by one
// goroutine.
type Nodes []*Node

// NewNodes prepares n nodes that differ in their addresses and data directories
// only.
func NewNodes(t testing.TB, n int, cfg NodeConfig) Nodes {
	t.Helper()
	nodes := make(Nodes, n)
	for k := range nodes {
		nodes[k] = NewNode(t, cfg)
	}
	return nodes
}

// URLs returns the base URLs of the public listeners, and those of the admin
// listeners.
func (nodes Nodes) URLs() (public, admin []string) {
	for _, n := range nodes {
		public, admin = append(public, n.URL), append(admin, n.AdminURL)
	}
	return public, admin
}

// Client returns a client of all nodes. The caller closes it.
func (nodes Nodes) Client(keys *Keys) *Client {
	public, admin := nodes.URLs()
	return NewClient(public, admin, keys)
}

// StartReady starts all nodes at once and waits until each of them is ready.
func (nodes Nodes) StartReady(ctx context.Context) {
	for _, n := range nodes {
		n.t.Helper()
		n.Start()
	}
	nodes.WaitReady(ctx)
}

// WaitReady waits until each node is ready, and fails the test when one is not.
func (nodes Nodes) WaitReady(ctx context.Context) {
	for _, n := range nodes {
		n.t.Helper()
		if err := n.WaitReady(ctx); err != nil {
			n.t.Fatalf("%v\n%s", err, n.LogTail())
		}
	}
}

// Kill kills all nodes at one instant, and waits until they are gone.
func (nodes Nodes) Kill() {
	for _, n := range nodes {
		n.t.Helper()
		n.Signal(os.Kill)
	}
	for _, n := range nodes {
		<-n.done
	}
}

// Stop stops all nodes at once, and fails the test unless each ends as
// [Node.WaitStopped] wants.
func (nodes Nodes) Stop() {
	for _, n := range nodes {
		n.t.Helper()
		n.Signal(syscall.SIGTERM)
	}
	for _, n := range nodes {
		n.WaitStopped()
	}
}

package nodes

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// cluster is nodes that share a ledger and a Redis.
type cluster struct {
	*testing.T
	keys   *harness.Keys
	nodes  harness.Nodes
	client *harness.Client   // of all nodes in turn
	each   []*harness.Client // of one node each
	acks   *harness.Acks
}

// start starts n nodes of a ledger, which is a database of its own, with more flags.
func start(t *testing.T, n int, ledger, redis string, flags ...string) *cluster {
	keys := harness.NewKeys(t)
	nodes := harness.NewNodes(t, n, harness.NodeConfig{Keys: keys, Flags: slices.Concat([]string{
		"--ledger", ledger, "--redis", redis, "--limits-user-rate", "0", "--limits-address-rate", "0",
	}, flags)})
	nodes.StartReady(t.Context())
	client := nodes.Client(keys)
	t.Cleanup(client.Close)
	return &cluster{T: t, keys: keys, nodes: nodes, client: client, each: client.Each(), acks: harness.NewAcks()}
}

// set likes or unlikes through the nodes in turn.
func (c *cluster) set(user string, item harness.Item, like bool) (harness.LikeState, error) {
	return harness.Recorder{Client: c.client, Acks: c.acks}.Set(c.Context(), user, item, like)
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// soon is how long a machine that others use too may take for what takes a second.
const soon = 30 * time.Second

// check wants all views of all nodes to agree, soon, with what was acknowledged.
func (c *cluster) check() {
	c.Helper()
	checker := harness.Checker{Client: c.client, Acks: c.acks, Within: soon}
	c.must(checker.Check(c.Context()))
}

// within waits until something holds.
func (c *cluster) within(d time.Duration, what string, holds func() (bool, error)) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), d)
	defer cancel()
	if err := harness.Poll(ctx, 5*time.Millisecond, holds); err != nil {
		c.Fatalf("not so within %v: %s: %v", d, what, err)
	}
}

// showsSoon waits until every node shows a count.
func (c *cluster) showsSoon(item harness.Item, want int64) {
	c.Helper()
	c.showsWithin(soon, item, want)
}

func (c *cluster) showsWithin(d time.Duration, item harness.Item, want int64) {
	c.Helper()
	for k, node := range c.each {
		got := int64(-1)
		c.within(d, fmt.Sprintf("node %d shows %d likes", k+1, want), func() (bool, error) {
			counts, err := node.Counts(c.Context(), "", item)
			if err != nil {
				return false, err
			}
			got = counts[0].Count
			return got == want, nil
		})
	}
}

package scenarios

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"likewise/test/harness"
	"likewise/test/servers"
)

// TwoNodes is two processes that share a ledger in PostgreSQL, and a Redis that all
// scenarios of the test have in common.
func TwoNodes(t *testing.T) Deployment {
	cache := servers.Redis(t)
	return func(t *testing.T, o Options) *Target {
		if o.DataDir != "" {
			t.Skip("skipped: the facts are in a database, not in a directory of the node")
		}
		database := servers.Database(t)
		flags := []string{
			"--ledger", database, "--redis", cache.URL(), "--shared-prefix", fmt.Sprintf("s%x", rand.Uint64()),
			// Others use the machine too; what happens when calls take too long is not tested here.
			"--shared-timeout", "5s", "--counts-load-timeout", "8s",
		}
		if !o.Limits {
			flags = append(flags, noLimits...)
		}
		keys := harness.NewKeys(t)
		nodes := harness.NewNodes(t, 2, harness.NodeConfig{Keys: keys, Flags: slices.Concat(flags, o.Flags)})
		nodes.StartReady(t.Context())
		public, admin := nodes.URLs()
		return &Target{
			URLs:     public,
			Admin:    admin,
			Keys:     keys,
			Nodes:    nodes,
			Database: database,
			Settle:   settle,
			Clock:    func(t *testing.T, ahead time.Duration) { restartWithClock(t, nodes, nodes[:1], ahead) },
		}
	}
}

// restartWithClock stops all nodes, and starts them with the clock of some ahead.
func restartWithClock(t *testing.T, nodes, wrong harness.Nodes, ahead time.Duration) {
	nodes.Stop()
	for _, n := range wrong {
		if n.Use(harness.Binary(t)); ahead != 0 {
			n.Use(harness.Build(t, "./test/clockahead"), "--ahead", ahead.String())
		}
	}
	nodes.StartReady(t.Context())
}

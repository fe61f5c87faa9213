package scenarios

import (
	"testing"
	"time"

	"likewise/test/harness"
)

// Options is what a scenario asks of its deployment.
type Options struct {
	Limits  bool     // keep the default limits per user and address
	DataDir string   // where to keep the data; empty = anywhere
	Flags   []string // more flags of serve
}

// Deployment starts the service in one shape. Start skips the test when it
// cannot give what the options ask for.
type Deployment struct {
	Name  string
	Start func(t *testing.T, o Options) *Target
}

// Target is a running service. Requests alternate between its URLs.
type Target struct {
	URLs  []string
	Admin []string // admin listeners; empty when they are out of reach
	Keys  *harness.Keys
	Nodes []*harness.Node // empty when the processes are not ours
	// Settle is how long counts may take after the last acknowledgement.
	Settle time.Duration
	// Clock starts the service again, stopped before, on the same data with its
	// clock ahead by d; nil when not offered.
	Clock func(t *testing.T, d time.Duration)
}

// noLimits raises what one user and one address may take out of the way.
var noLimits = []string{
	"--limits-user-rate", "1000000", "--limits-user-burst", "1000000",
	"--limits-address-rate", "1000000", "--limits-address-burst", "1000000",
}

// Embedded is one process of the built program on its embedded store.
func Embedded() Deployment {
	return Deployment{Name: "embedded", Start: startEmbedded}
}

func startEmbedded(t *testing.T, o Options) *Target {
	keys := harness.NewKeys(t)
	flags := o.Flags
	if !o.Limits {
		flags = append(append([]string{}, noLimits...), flags...)
	}
	node := harness.NewNode(t, harness.NodeConfig{DataDir: o.DataDir, Keys: keys, Flags: flags})
	node.StartReady(t.Context())
	return &Target{
		URLs:   []string{node.URL},
		Admin:  []string{node.AdminURL},
		Keys:   keys,
		Nodes:  []*harness.Node{node},
		Settle: 5 * time.Second,
	}
}

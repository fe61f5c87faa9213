package scenarios

import (
	"strings"
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

// Deployment starts the service in one shape, or skips the test when it cannot
// give what the options ask for.
type Deployment func(t *testing.T, o Options) *Target

// Target is a running service. Requests alternate between its URLs.
type Target struct {
	URLs  []string
	Admin []string // admin listeners; empty when they are out of reach
	Keys  *harness.Keys
	Nodes harness.Nodes // empty when the processes are not ours
	// Database is the URL of the PostgreSQL database with the facts, empty when they
	// are in the data directory of the one node.
	Database string
	// Settle is how long counts may take after the last acknowledgement.
	Settle time.Duration
	// Clock restarts the service with a clock that runs ahead; nil when not offered.
	Clock func(t *testing.T, ahead time.Duration)
}

// settle is how long a machine that others use too may take for what takes a second.
const settle = 30 * time.Second

// noLimits lifts what one user and one address may take.
var noLimits = []string{"--limits-user-rate", "0", "--limits-address-rate", "0"}

// Embedded is one process of the built program on its embedded store.
func Embedded(t *testing.T, o Options) *Target {
	keys := harness.NewKeys(t)
	flags := o.Flags
	if !o.Limits {
		flags = append(append([]string{}, noLimits...), flags...)
	}
	nodes := harness.NewNodes(t, 1, harness.NodeConfig{DataDir: o.DataDir, Keys: keys, Flags: flags})
	nodes.StartReady(t.Context())
	public, admin := nodes.URLs()
	return &Target{
		URLs:   public,
		Admin:  admin,
		Keys:   keys,
		Nodes:  nodes,
		Settle: settle,
		Clock:  func(t *testing.T, ahead time.Duration) { restartWithClock(t, nodes, nodes, ahead) },
	}
}

// The environment of a service that runs already: base URLs of its nodes and of
// their admin listeners, separated by commas, and the file with its secret. Its
// limits per user and address must be out of the way.
const (
	TargetEnv       = "LIKEWISE_TARGET"
	TargetAdminEnv  = "LIKEWISE_TARGET_ADMIN"
	TargetSecretEnv = "LIKEWISE_TARGET_SECRET_FILE"
)

// Running is the service that getenv names.
func Running(getenv func(string) string) Deployment {
	urls := func(env string) []string {
		return strings.FieldsFunc(getenv(env), func(r rune) bool { return r == ',' })
	}
	return func(t *testing.T, o Options) *Target {
		if o.Limits || o.DataDir != "" || len(o.Flags) > 0 {
			t.Skip("skipped: needs settings of its own")
		}
		return &Target{
			URLs:   urls(TargetEnv),
			Admin:  urls(TargetAdminEnv),
			Keys:   harness.LoadKeys(t, getenv(TargetSecretEnv)),
			Settle: settle,
		}
	}
}

package scenarios

import (
	"os"
	"testing"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func TestEmbedded(t *testing.T) { Run(t, Embedded) }

func TestRunning(t *testing.T) {
	if os.Getenv(TargetEnv) == "" {
		t.Skipf("skipped: no running service named by %s", TargetEnv)
	}
	Run(t, Running)
}

package scenarios

import (
	"testing"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func TestEmbedded(t *testing.T) { Run(t, Embedded) }

func TestRunning(t *testing.T) { Run(t, Running) }

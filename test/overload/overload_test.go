// Package overload offers the running program twice the load that it can serve
// and checks that it goes on serving as much as before, refuses the rest quickly
// and clearly, and keeps its memory bounded. It runs only in full size.
package overload

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// report is the part of the generator's report that is checked.
type report struct {
	Seconds, Offered, Goodput float64
	Statuses                  map[string]int64
	NoAnswer                  int64   `json:"no_answer"`
	NoHint                    int64   `json:"no_hint"`
	P99                       float64 `json:"p99_ms"`
	RefusedP99                float64 `json:"refused_p99_ms"`
}

const (
	peakConnections = 64
	overConnections = 2048
	boundedRSS      = 1 << 30
)

func TestTwiceThePeak(t *testing.T) {
	harness.SkipUnlessHeavy(t, "the overload check takes a minute and the whole machine")
	keys := harness.NewKeys(t)
	node := harness.NewNode(t, harness.NodeConfig{Keys: keys, Flags: []string{"--limits-user-rate", "0"}})
	node.StartReady(t.Context())
	program := harness.Build(t, "./bench/load")

	load := func(rate, connections int, d time.Duration) report {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, "--json", "--url", node.URL, "--jwt-secret-file", keys.File,
			"--rate", strconv.Itoa(rate), "--connections", strconv.Itoa(connections), "--duration", d.String())
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("load: %v\n%s", err, node.LogTail())
		}
		var r report
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatal(err)
		}
		t.Logf("rate %d on %d connections: %s", rate, connections, out)
		return r
	}
	load(0, peakConnections, 3*time.Second) // warm
	peak := load(0, peakConnections, 10*time.Second)
	over := load(int(2*peak.Goodput), overConnections, 20*time.Second)
	rss := node.RSS()
	after := load(0, peakConnections, 5*time.Second)

	if over.Goodput < 0.9*peak.Goodput {
		t.Errorf("%.0f likes/s under twice the load, want 90 %% of %.0f", over.Goodput, peak.Goodput)
	}
	if after.Goodput < 0.9*peak.Goodput {
		t.Errorf("%.0f likes/s after the overload, want 90 %% of %.0f", after.Goodput, peak.Goodput)
	}
	for status := range over.Statuses {
		if status != "200" && status != "503" {
			t.Errorf("%d answers of %s", over.Statuses[status], status)
		}
	}
	if over.NoHint > 0 || over.NoAnswer > 0 {
		t.Errorf("%d refusals without Retry-After, %d requests without an answer", over.NoHint, over.NoAnswer)
	}
	if rss > boundedRSS {
		t.Errorf("resident memory is %d MiB, want at most %d", rss>>20, boundedRSS>>20)
	}
	node.Stop()
}

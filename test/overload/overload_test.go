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
	connections = 1024
	queueLength = "64"
	syncDelay   = "50000" // microseconds
	boundedRSS  = 512 << 20
)

// TestTwiceThePeak doubles the offered load until it is well above the most that
// was ever served, and then once more. The server has a slow disk and a short queue, so that the disk is
// what limits it and a generator on the same machine can offer so much: on a fast
// disk a group commit takes whatever the processors can bring.
func TestTwiceThePeak(t *testing.T) {
	harness.SkipUnlessHeavy(t, "the overload check takes a minute and the whole machine")
	tracer, err := exec.LookPath("strace")
	if err != nil {
		harness.NotOffered(t, "no strace here to slow down the disk")
	}
	keys := harness.NewKeys(t)
	node := harness.NewNode(t, harness.NodeConfig{
		Keys: keys,
		Wrap: []string{
			tracer, "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null",
			"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_exit=" + syncDelay,
		},
		Flags: []string{"--limits-user-rate", "0", "--pebble-queue-length", queueLength},
	})
	node.StartReady(t.Context())
	program := harness.Build(t, "./bench/load")

	load := func(rate int, d time.Duration) report {
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
		t.Logf("rate %d, %d MiB resident: %s", rate, node.RSS()>>20, out)
		return r
	}
	rate, peak := 200, 0.0
	for offered := 0.0; offered <= peak*1.5; rate *= 2 {
		r := load(rate, 10*time.Second)
		offered, peak = r.Offered, max(peak, r.Goodput)
	}
	over := load(rate, 10*time.Second)
	rss := node.RSS()
	after := load(int(peak/2), 5*time.Second)

	if over.Goodput < 0.9*peak {
		t.Errorf("%.0f likes/s at %.0f offered, want 90 %% of %.0f", over.Goodput, over.Offered, peak)
	}
	if after.Goodput < 0.9*after.Offered {
		t.Errorf("%.0f likes/s of %.0f offered after the overload: it did not recover", after.Goodput, after.Offered)
	}
	for status := range over.Statuses {
		if status != "200" && status != "503" {
			t.Errorf("%d answers of %s", over.Statuses[status], status)
		}
	}
	if over.Statuses["503"] == 0 {
		t.Error("nothing was refused, so this was no overload")
	}
	if over.NoHint > 0 || over.NoAnswer > 0 {
		t.Errorf("%d refusals without Retry-After, %d requests without an answer", over.NoHint, over.NoAnswer)
	}
	if rss > boundedRSS {
		t.Errorf("resident memory is %d MiB, want at most %d", rss>>20, boundedRSS>>20)
	}
	node.Stop()
}

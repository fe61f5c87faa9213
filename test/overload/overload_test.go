// Package overload offers the running program twice the load that it can serve
// and checks that it goes on serving as much as before, refuses the rest quickly
// and clearly, and keeps its memory bounded. It runs only in full size.
package overload

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// report is the part of the generator's report that is checked.
type report struct {
	Offered, Goodput float64
	Statuses         map[string]int64
	NoAnswer         int64   `json:"no_answer"`
	NoHint           int64   `json:"no_hint"`
	P99              float64 `json:"p99_ms"`
}

const needs = "the overload checks take a minute each and the whole machine"

const (
	window     = 3 * time.Second
	rounds     = 5
	most       = 15   // rounds, where others use the machine too
	least      = 0.75 // of the peak under twice its load; the generator takes its part of the machine
	overloaded = 1.6  // of the peak must be offered, or nothing is put to the test
	boundedRSS = 512 << 20
	waits      = time.Second // the default bound on the age of a waiting command
	margin     = time.Second // for its commit, and for both programs on one machine
)

// overload is one kind of load and the server that it meets.
type overload struct {
	flags, wrap []string // of the server
	load        []string // flags of the generator
	peak        int      // connections of a closed loop that the server can just serve
	over        int      // connections for the open loop
}

// TestDefaultSettings sends batches, because on a fast disk a group commit takes
// whatever single likes the processors can bring, and nothing is ever refused.
func TestDefaultSettings(t *testing.T) {
	harness.SkipUnlessHeavy(t, needs)
	overload{
		flags: []string{"--limits-user-rate", "0", "--pebble-queue-age", waits.String()},
		load:  []string{"--op", "batch", "--users", "1000000"},
		peak:  16, over: 128,
	}.run(t)
}

// TestSlowDisk sends single likes to a server whose disk is what limits it.
func TestSlowDisk(t *testing.T) {
	harness.SkipUnlessHeavy(t, needs)
	tracer, err := exec.LookPath("strace")
	if err != nil {
		harness.NotOffered(t, "no strace here to slow down the disk")
	}
	overload{
		flags: []string{"--limits-user-rate", "0", "--pebble-queue-age", waits.String(), "--pebble-queue-length", "64"},
		wrap: []string{
			tracer, "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null",
			"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:delay_exit=50000", // microseconds
		},
		peak: 96, over: 1024,
	}.run(t)
}

// run lets windows of peak load and of twice that load take turns, so that what
// else the machine does meets both alike.
func (o overload) run(t *testing.T) {
	keys := harness.NewKeys(t)
	node := harness.NewNode(t, harness.NodeConfig{Keys: keys, Wrap: o.wrap, Flags: o.flags})
	node.StartReady(t.Context())
	program := harness.Build(t, "./bench/load")

	load := func(rate, connections int) report {
		t.Helper()
		args := slices.Concat(o.load, []string{
			"--json", "--url", node.URL, "--jwt-secret-file", keys.File, "--duration", window.String(),
			"--rate", strconv.Itoa(rate), "--connections", strconv.Itoa(connections),
		})
		cmd := exec.CommandContext(t.Context(), program, args...)
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
	load(0, o.peak) // everything is grown
	var kept, offered, p99 []float64
	refused := int64(0)
	slowest := float64((waits + margin).Milliseconds())
	good := func() bool {
		return median(kept) >= least && median(offered) >= overloaded && refused > 0 && median(p99) <= slowest
	}
	for round := 0; round < rounds || round < most && !good(); round++ {
		peak := load(0, o.peak).Goodput
		r := load(int(2*peak), o.over)
		r.wantClear(t)
		refused += r.Statuses["503"]
		kept, offered, p99 = append(kept, r.Goodput/peak), append(offered, r.Offered/peak), append(p99, r.P99)
		if rss := node.RSS(); rss > boundedRSS {
			t.Errorf("resident memory is %d MiB, want at most %d", rss>>20, boundedRSS>>20)
		}
	}
	t.Logf("%.2f of the peak was served while %.2f of it was offered", median(kept), median(offered))
	if got := median(offered); got < overloaded || refused == 0 {
		t.Errorf("%.2f of the peak was offered and %d requests refused, so this was no overload", got, refused)
	}
	if got := median(kept); got < least {
		t.Errorf("%.2f of the peak was served under overload, want %.1f", got, least)
	}
	if got := median(p99); got > slowest {
		t.Errorf("99 of 100 accepted requests took up to %.0f ms, want at most %v", got, waits+margin)
	}
	node.Stop()
}

// wantClear wants every request to be served or refused as promised.
func (r report) wantClear(t *testing.T) {
	t.Helper()
	for status, n := range r.Statuses {
		if status != "200" && status != "503" {
			t.Errorf("%d answers of %s", n, status)
		}
	}
	if r.NoHint > 0 || r.NoAnswer > 0 {
		t.Errorf("%d refusals without Retry-After, %d requests without an answer", r.NoHint, r.NoAnswer)
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

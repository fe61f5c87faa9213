package conformance

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRulesAreTheContract compares the ids in the port's comments with the suite's.
func TestRulesAreTheContract(t *testing.T) {
	source, err := os.ReadFile("../ledger.go")
	if err != nil {
		t.Fatal(err)
	}
	var written, checked []string
	for _, m := range regexp.MustCompile(`(?m)^\s*//\s+([A-Z]\d+)\. `).FindAllStringSubmatch(string(source), -1) {
		written = append(written, m[1])
	}
	for _, r := range rules {
		checked = append(checked, r.id)
	}
	slices.Sort(written)
	slices.Sort(checked)
	if !slices.Equal(written, checked) {
		t.Errorf("the port has rules %v, the suite checks %v", written, checked)
	}
}

// recorder is a T that remembers failures.
type recorder struct {
	ctx      context.Context
	mu       sync.Mutex
	failures []string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Logf(string, ...any)      {}
func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// record runs check on a fresh ledger and returns its failures.
func record(t *testing.T, h Harness, check func(*run)) []string {
	rec := &recorder{ctx: t.Context()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := newRun(rec, t, h)
		r.patience = 500 * time.Millisecond
		check(r)
	}()
	<-done
	return rec.failures
}

// TestMutants runs each broken ledger against the rule that has to catch it, and
// demands that every rule catches one.
func TestMutants(t *testing.T) {
	caught := map[string]bool{}
	for _, m := range mutants {
		for _, id := range strings.Fields(m.rules) {
			t.Run(id+"/"+strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
				k := slices.IndexFunc(rules, func(r rule) bool { return r.id == id })
				failures := record(t, brokenHarness(m.lag, m.mutate), rules[k].check)
				if len(failures) == 0 {
					t.Fatalf("a ledger that %s passes %s", m.name, id)
				}
				t.Logf("%d failures, the first: %s", len(failures), failures[0])
				caught[id] = true
			})
		}
	}
	if testing.Short() || t.Failed() {
		return
	}
	for _, r := range rules {
		if !caught[r.id] {
			t.Errorf("no broken ledger was ever caught by %s", r.id)
		}
	}
}

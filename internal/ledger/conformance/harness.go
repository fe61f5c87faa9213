// Package conformance is the one suite that every ledger passes. Each numbered
// rule of package ledger is a function here and a subtest of the same name; a
// test compares the two lists. Beside the rules stand a random run against the
// memory ledger ([Model]) and the benchmarks that all ledgers share ([Bench]).
//
// A driver's test file is one [Harness] and three calls. The suite tests itself
// against deliberately broken ledgers: a rule that has never failed proves
// nothing.
//
// Two flags belong to every test binary that uses the package:
// -conformance.seed=N replays a random run, and -conformance.update rewrites the
// driver's column of docs/conformance.md.
package conformance

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

var (
	flagSeed   = flag.Uint64("conformance.seed", 0, "seed of the random run; 0 takes the test's own")
	flagUpdate = flag.Bool("conformance.update", false, "rewrite this driver's column of docs/conformance.md")
	flagSize   = flag.Int("conformance.size", 100_000, "likes of the large item and user in read benchmarks")
)

// Harness is how the suite handles one driver. Only Name and Open are required;
// a zero field says that the driver cannot do the thing, and the rules that need
// it then have to be named in Lacks.
type Harness struct {
	// Name heads the driver's column in docs/conformance.md; "" keeps no column.
	Name string
	// Open returns a fresh, empty ledger whose stamps come from now, and closes it
	// in a cleanup of tb (closing twice is harmless, C1).
	Open func(tb testing.TB, now func() time.Time) ledger.Ledger
	// Reopen ends l as hard as the driver can (a crash rather than a Close, if l
	// is not closed yet, also while calls are under way) and returns what a new
	// process would open, with the same clock and its own cleanup.
	Reopen func(tb testing.TB, l ledger.Ledger) ledger.Ledger
	// Restore opens a directory that Backup wrote. Nil says that Backup returns
	// errors.ErrUnsupported.
	Restore func(tb testing.TB, dir string, now func() time.Time) ledger.Ledger
	// Injure falsifies what l stores, behind its back, and reports false for a
	// kind of injury that this driver cannot have.
	Injure func(tb testing.TB, l ledger.Ledger, in Injury) bool
	// Settle bounds how long totals go on moving after the last acknowledgement;
	// 0 says that they move with it.
	Settle time.Duration
	// Backlog is a number of changed items at which a feed that is not read has
	// certainly given up; 0 leaves that part of F3 out.
	Backlog int
	// Brief says that a command costs so much that walks under churn are repeated only
	// once for each page size.
	Brief bool
	// Lacks names the rules that the driver does not keep.
	Lacks []Lack
}

// Lack is one rule that a driver does not keep, and why.
type Lack struct{ Rule, Reason string }

// Injury is one falsification: exactly one of the three fields is set, beside Fact.
type Injury struct {
	Fact    like.Fact // whose item's total or list is falsified
	Skew    int64     // add to the total of Fact.Item, leaving facts and lists
	Unlist  bool      // drop Fact, which exists, from the list of its item
	Phantom bool      // add Fact, which does not exist, to the list of its item
}

// T is the part of testing.TB that a rule reports to. The suite records failures
// through it when it tests itself.
type T interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Run checks every rule in a subtest named by it, and then the driver's column of
// docs/conformance.md.
func Run(t *testing.T, h Harness) {
	lacks := map[string]string{}
	for _, l := range h.Lacks {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.id == l.Rule }) || l.Reason == "" {
			t.Fatalf("%+v names no rule or gives no reason", l)
		}
		lacks[l.Rule] = l.Reason
	}
	results := map[string]string{}
	for _, r := range rules {
		t.Run(r.id, func(t *testing.T) {
			if reason, ok := lacks[r.id]; ok {
				results[r.id] = "lacks: " + reason
				t.Skipf("%s lacks %s: %s", h.Name, r.id, reason)
			}
			r.check(newRun(t, t, h))
			results[r.id] = "pass"
		})
	}
	if len(results) == len(rules) && h.Name != "" && !t.Failed() {
		checkMatrix(t, h.Name, results)
	}
}

// rule is one numbered rule and the function that checks it.
type rule struct {
	id    string
	check func(*run)
}

// rules lists all rules: closing, writing, reading, feeding, keeping, standing still.
var rules = []rule{
	{"C1", checkC1},
	{"C2", checkC2},
	{"W1", checkW1},
	{"W2", checkW2},
	{"W3", checkW3},
	{"W4", checkW4},
	{"W5", checkW5},
	{"W6", checkW6},
	{"W7", checkW7},
	{"W8", checkW8},
	{"W9", checkW9},
	{"W10", checkW10},
	{"W11", checkW11},
	{"R1", checkR1},
	{"R2", checkR2},
	{"R3", checkR3},
	{"R4", checkR4},
	{"R5", checkR5},
	{"R6", checkR6},
	{"R7", checkR7},
	{"R8", checkR8},
	{"R9", checkR9},
	{"R10", checkR10},
	{"F1", checkF1},
	{"F2", checkF2},
	{"F3", checkF3},
	{"F4", checkF4},
	{"A1", checkA1},
	{"A2", checkA2},
	{"A3", checkA3},
	{"A4", checkA4},
	{"A5", checkA5},
	{"A6", checkA6},
	{"A7", checkA7},
	{"S1", checkS1},
	{"S2", checkS2},
	{"S3", checkS3},
	{"S4", checkS4},
}

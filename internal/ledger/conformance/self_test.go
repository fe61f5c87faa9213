package conformance

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
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

// TestMutants runs each broken ledger against the rule that has to catch it, and
// demands that every rule catches one.
func TestMutants(t *testing.T) {
	named := map[string]bool{}
	for _, m := range mutants {
		for id := range strings.FieldsSeq(m.rules) {
			named[id] = true
			t.Run(id+"/"+strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
				k := slices.IndexFunc(rules, func(r rule) bool { return r.id == id })
				var failures []string
				for range 5 { // some faults show only when calls meet
					failures = record(t, brokenHarness(m.lag, m.mutate), 500*time.Millisecond, rules[k].check)
					if len(failures) > 0 {
						break
					}
				}
				if len(failures) == 0 {
					t.Fatalf("a ledger that %s passes %s", m.name, id)
				}
				t.Logf("%d failures, the first: %s", len(failures), failures[0])
			})
		}
	}
	for _, r := range rules {
		if !named[r.id] {
			t.Errorf("%s has to catch a broken ledger, and none is named for it", r.id)
		}
	}
}

// TestModelCatches plays the random run against broken ledgers, and shrinks one.
func TestModelCatches(t *testing.T) {
	ops := generate(1, modelOps)
	wanted := []string{
		"counts a repeat", "forgets the first stamp on a repeat", "folds a batch backwards", "stamps with the wall clock",
		"turns a page around", "skips equal stamps at a page's edge", "ignores case", "joins user and item with a colon",
		"gives two counts one version", "erases without counting", "repairs without being asked",
		"stamps an import with its own time", "takes a lagging total for drift", "gives the caller's view a version",
		"does not feed what an audit corrected", "starts versions again for a removed item", "acknowledges an unlike before it is folded",
	}
	for _, name := range wanted {
		m := mutants[slices.IndexFunc(mutants, func(m mutant) bool { return m.name == name })]
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			failures := record(t, brokenHarness(m.lag, m.mutate), 200*time.Millisecond, func(r *run) { replay(r, ops) })
			if len(failures) == 0 {
				t.Fatalf("the random run does not notice a ledger that %s", name)
			}
			t.Log(failures[0])
		})
	}
	t.Run("shrink", func(t *testing.T) {
		k := slices.IndexFunc(mutants, func(m mutant) bool { return m.name == "counts a repeat" })
		h := brokenHarness(0, mutants[k].mutate)
		small, why := shrink(t, h, ops, play(t, h, ops))
		if len(small) > 2 {
			t.Errorf("two likes show it, shrunk to %d steps (%s):\n%s", len(small), why[0], format(small))
		}
	})
}

func TestMatrix(t *testing.T) {
	all := map[string]string{}
	for _, r := range rules {
		all[r.id] = "pass"
	}
	lacking := maps.Clone(all)
	lacking["W1"] = "lacks: keeps nothing"
	text := withColumn(withColumn("", "b", all), "a", lacking)
	if got := parseMatrix(text); !maps.Equal(got["a"], lacking) || !maps.Equal(got["b"], all) || len(got) != 2 {
		t.Errorf("the matrix reads back as %v:\n%s", got, text)
	}
	if again := withColumn(text, "b", all); again != text {
		t.Errorf("rewriting an unchanged column changes the matrix:\n%s", again)
	}
}

package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

const (
	modelOps    = 700              // steps of one run
	shrinkLimit = 20 * time.Second // for finding a shorter list that fails too
)

// Model generates a list of steps from seed (0 draws one), plays it against a
// ledger of the harness and against the memory ledger, and compares everything
// that a caller can see. A second run lets several users act at once and compares
// at rest. The seed is logged; on failure the steps, and a shorter list of steps
// that still fails, are in the test's artifact directory.
func Model(t *testing.T, h Harness, seed uint64) {
	seed = cmp.Or(*flagSeed, seed, rand.Uint64())
	t.Logf("replay with -conformance.seed=%d", seed)
	t.Run("sequential", func(t *testing.T) {
		ops := generate(seed, modelOps)
		failures := play(t, h, ops)
		if len(failures) == 0 {
			return
		}
		small, why := shrink(t, h, ops, failures)
		path := filepath.Join(t.ArtifactDir(), fmt.Sprintf("ops-%d.txt", seed))
		text := fmt.Sprintf("shrunk:\n%s\nall:\n%s", format(small), format(ops))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
		t.Errorf("seed %d: %s\nafter these steps (all of them in %s):\n%s", seed, why[0], path, format(small))
	})
	t.Run("concurrent", func(t *testing.T) {
		for _, f := range record(t, h, patience, func(r *run) { concurrent(r, seed) }) {
			t.Errorf("seed %d: %s", seed, f)
		}
	})
}

// play runs steps on a fresh ledger and returns what differed.
func play(t *testing.T, h Harness, ops []op) []string {
	var failures []string
	t.Run("play", func(t *testing.T) { // a subtest, so that its ledgers are closed now
		failures = record(t, h, patience, func(r *run) { replay(r, ops) })
	})
	return failures
}

// replay plays steps on the ledger of a run beside a fresh oracle.
func replay(r *run, ops []op) {
	m := newModel(r)
	for k, o := range ops {
		m.step = fmt.Sprintf("step %d, %v: ", k, o)
		m.do(o)
	}
	m.step = "at the end: "
	m.finish()
}

// shrink leaves out more and more of the steps as long as the rest still fails.
func shrink(t *testing.T, h Harness, ops []op, failures []string) ([]op, []string) {
	deadline := time.Now().Add(shrinkLimit)
	for size := len(ops) / 2; size > 0; size /= 2 {
		for at := 0; at < len(ops); {
			if time.Now().After(deadline) {
				return ops, failures
			}
			rest := slices.Concat(ops[:at], ops[min(at+size, len(ops)):])
			if f := play(t, h, rest); len(f) > 0 {
				ops, failures = rest, f
			} else {
				at += size
			}
		}
	}
	return ops, failures
}

// model is a ledger under test beside the oracle. The oracle is told with which
// stamp the ledger accepted a like, so that the two agree on times.
type model struct {
	*run
	step     string // put before every failure
	oracle   *memory.Ledger
	versions versions
	newest   map[like.Item]uint64 // the largest version seen
	last     like.Stamp           // the largest stamp that the ledger chose
	feed     *watch
	changed  map[like.Item]bool // since the feed is live
}

func newModel(r *run) *model {
	m := &model{
		versions: versions{}, newest: map[like.Item]uint64{}, changed: map[like.Item]bool{},
		// Far ahead, so that no stamp of the ledger is refused.
		oracle: memory.New(memory.Config{Now: func() time.Time { return time.Now().AddDate(10, 0, 0) }}),
	}
	r.tb.Cleanup(func() { m.oracle.Close() })
	inner := *r
	inner.T = prefixed{r.T, &m.step}
	m.run = &inner
	m.feed = m.watch()
	return m
}

// prefixed puts the step that is under way before every failure.
type prefixed struct {
	T
	prefix *string
}

func (p prefixed) Errorf(format string, args ...any) {
	p.T.Helper()
	p.T.Errorf("%s%s", *p.prefix, fmt.Sprintf(format, args...))
}

func (p prefixed) Fatalf(format string, args ...any) {
	p.T.Helper()
	p.T.Fatalf("%s%s", *p.prefix, fmt.Sprintf(format, args...))
}

// do plays one step on both ledgers.
func (m *model) do(o op) {
	switch o.kind {
	case opApply, opBatch:
		m.command(o)
	case opErase:
		m.erase(o.user)
	case opRemove:
		m.remove(o.item)
	case opClock:
		m.clock.step(time.Duration(o.n) * time.Millisecond)
	case opReopen:
		m.reopen()
		m.feed.stop()
		m.feed = m.watch()
		clear(m.changed)
	case opSettle:
		m.compareTotals()
	case opSkew, opUnlist, opPhantom:
		m.injure(o)
	default:
		m.read(o)
	}
}

// finish compares everything once more.
func (m *model) finish() {
	m.compareTotals()
	m.feed.stop()
	m.equal("all facts", sorted(m.exported(m.oracle)), sorted(m.agree(modelUsers, modelItems)))
}

func (m *model) equal(what string, want, got any) {
	m.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		m.Fatalf("%s (-oracle +ledger):\n%s", what, diff)
	}
}

func (m *model) exported(l ledger.Ledger) []like.Fact {
	m.Helper()
	var facts []like.Fact
	for f, err := range l.Export(m.Context()) {
		if err != nil {
			m.Fatalf("Export: %v", err)
		}
		facts = append(facts, f)
	}
	return facts
}

// compareTotals waits until totals rest and compares them with the oracle's, and
// with what the feed showed last of those that changed.
func (m *model) compareTotals() {
	m.Helper()
	m.settle()
	want, err := m.oracle.Totals(m.Context(), modelItems)
	if err != nil {
		m.Fatalf("oracle: %v", err)
	}
	for _, t := range want {
		got := m.totalIs(t.Item, t.Count)
		m.sawTotal(got)
		if m.changed[t.Item] {
			m.feed.shows(m.run, got)
		}
	}
}

// sawTotal checks that versions only grow and never belong to two counts.
func (m *model) sawTotal(t like.Total) {
	m.Helper()
	m.versions.saw(m, "Totals", t)
	if t.Version < m.newest[t.Item] {
		m.Fatalf("version of %v went from %d back to %d", t.Item, m.newest[t.Item], t.Version)
	}
	m.newest[t.Item] = t.Version
}

// audits collects the audits of all items, by item.
func (m *model) audits(l ledger.Ledger) map[like.Item]ledger.Audit {
	m.Helper()
	all := map[like.Item]ledger.Audit{}
	for a, err := range l.AuditAll(m.Context(), false) {
		if err != nil {
			m.Fatalf("AuditAll: %v", err)
		}
		if _, again := all[a.Item]; again {
			m.Fatalf("AuditAll yields %v twice", a.Item)
		}
		all[a.Item] = a
	}
	maps.DeleteFunc(all, func(_ like.Item, a ledger.Audit) bool { return a == (ledger.Audit{Item: a.Item}) })
	return all
}

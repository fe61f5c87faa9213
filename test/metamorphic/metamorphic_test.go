package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// length is the steps of one sequence.
const length = 15

// TestAllVariantsShowTheSame sends every sequence through every variant.
func TestAllVariantsShowTheSame(t *testing.T) {
	seed := seedOf(t)
	want := expect(t, sequences(seed, harness.Size(6, 200)))
	for _, s := range setups() {
		t.Run(s.name, func(t *testing.T) {
			b := bench{variant: variant{s.open(t), s.sends, settle}}
			if found := b.firstDifference(t, want); found != nil {
				t.Error(b.shorten(t, *found))
			}
		})
	}
}

// seedOf is that of an earlier run, or a new one.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64() >> 1
	if text := os.Getenv("LIKEWISE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("LIKEWISE_SEED: %v", err)
		}
	}
	t.Logf("LIKEWISE_SEED=%d", seed)
	return seed
}

func sequences(seed uint64, n int) [][]step {
	all := make([][]step, n)
	for k := range all {
		all[k] = generate(rand.New(rand.NewPCG(seed, uint64(k))), length)
	}
	return all
}

// expected is a sequence with the transcript of the specification.
type expected struct {
	steps  []step
	script []string
}

func expect(t *testing.T, all [][]step) []expected {
	t.Helper()
	want := make([]expected, len(all))
	for k, steps := range all {
		script, err := transcribe(t.Context(), "s", specification(t), steps)
		if err != nil {
			t.Fatal(err)
		}
		want[k] = expected{steps, script}
	}
	return want
}

// bench is a variant that runs.
type bench struct {
	variant
	runs atomic.Int64 // begun so far
}

// difference is a sequence that shows something else than the specification.
type difference struct {
	steps []step
	text  string
}

// compare sends one sequence through the variant.
func (b *bench) compare(t *testing.T, want expected) *difference {
	name := fmt.Sprint("s", b.runs.Add(1))
	got, err := transcribe(t.Context(), name, b.variant, want.steps)
	if err != nil {
		return &difference{want.steps, err.Error()}
	}
	if text := cmp.Diff(want.script, got); text != "" {
		return &difference{want.steps, "(-specification +variant)\n" + text}
	}
	return nil
}

// firstDifference sends sequences, several at one time.
func (b *bench) firstDifference(t *testing.T, all []expected) *difference {
	var found atomic.Pointer[difference]
	var work sync.WaitGroup
	places := make(chan struct{}, 8)
	for _, want := range all {
		places <- struct{}{}
		if found.Load() != nil {
			break
		}
		work.Go(func() {
			defer func() { <-places }()
			if d := b.compare(t, want); d != nil {
				found.CompareAndSwap(nil, d)
			}
		})
	}
	work.Wait()
	return found.Load()
}

// shorten leaves out steps, one by one, as long as a difference remains.
func (b *bench) shorten(t *testing.T, d difference) string {
	for k := len(d.steps) - 1; k >= 0 && t.Context().Err() == nil; k-- {
		shorter := slices.Delete(slices.Clone(d.steps), k, k+1)
		if next := b.compare(t, expect(t, [][]step{shorter})[0]); next != nil {
			d = *next
		}
	}
	var text strings.Builder
	for k, s := range d.steps {
		fmt.Fprintf(&text, "step %d: %v\n", k, s)
	}
	return text.String() + d.text
}

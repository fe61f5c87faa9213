package reconcile

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeKeeper audits a fixed list of items, each for a while.
type fakeKeeper struct {
	ledger.Keeper
	audits []ledger.Audit
	each   time.Duration
	fail   error // after the last item
	runs   int
}

func (k *fakeKeeper) Audit(_ context.Context, item like.Item, repair bool) (ledger.Audit, error) {
	for _, a := range k.audits {
		if a.Item == item {
			a.Repaired = repair && a.Drift()
			return a, nil
		}
	}
	return ledger.Audit{Item: item}, nil
}

func (k *fakeKeeper) AuditAll(ctx context.Context, repair bool) iter.Seq2[ledger.Audit, error] {
	return func(yield func(ledger.Audit, error) bool) {
		k.runs++
		for _, a := range k.audits {
			time.Sleep(k.each)
			a, _ = k.Audit(ctx, a.Item, repair)
			if !yield(a, nil) {
				return
			}
		}
		if k.fail != nil {
			yield(ledger.Audit{}, k.fail)
		}
	}
}

func item(id string) like.Item { return like.Item{Collection: "posts", ID: id} }

func sound(id string) ledger.Audit  { return ledger.Audit{Item: item(id), Facts: 3, Total: 3} }
func broken(id string) ledger.Audit { return ledger.Audit{Item: item(id), Facts: 3, Total: 4} }

func newReconciler(k ledger.Keeper, change func(*Config)) *Reconciler {
	cfg := DefaultConfig()
	change(&cfg)
	return New(k, cfg, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
}

func valueOf(metric prometheus.Metric) float64 {
	var m dto.Metric
	if err := metric.Write(&m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

func (r *Reconciler) counted() map[string]float64 {
	return map[string]float64{
		"items":     valueOf(r.metrics.items),
		"found":     valueOf(r.metrics.found),
		"corrected": valueOf(r.metrics.corrected),
	}
}

func collect(seq iter.Seq2[ledger.Audit, error]) (all []ledger.Audit, err error) {
	for a, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, a)
	}
	return all, nil
}

func TestDriftIsCounted(t *testing.T) {
	for _, tc := range []struct {
		name   string
		repair bool
		want   map[string]float64
	}{
		{"dry run", false, map[string]float64{"items": 3, "found": 1, "corrected": 0}},
		{"repair", true, map[string]float64{"items": 3, "found": 1, "corrected": 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newReconciler(&fakeKeeper{audits: []ledger.Audit{sound("a"), broken("b"), sound("c")}}, func(*Config) {})
			all, err := collect(r.AuditAll(t.Context(), tc.repair))
			if err != nil || len(all) != 3 {
				t.Fatalf("audited %d items, error %v", len(all), err)
			}
			if diff := cmp.Diff(tc.want, r.counted()); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
			if valueOf(r.metrics.finished) == 0 {
				t.Error("the time of the last finished audit is not set")
			}
		})
	}
}

func TestAuditOfOneItemIsCounted(t *testing.T) {
	r := newReconciler(&fakeKeeper{audits: []ledger.Audit{broken("b")}}, func(*Config) {})
	if a, err := r.Audit(t.Context(), item("b"), true); err != nil || !a.Repaired {
		t.Fatalf("audit %+v, error %v", a, err)
	}
	want := map[string]float64{"items": 1, "found": 1, "corrected": 1}
	if diff := cmp.Diff(want, r.counted()); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestRunStopsAfterTooManyRepairs(t *testing.T) {
	k := &fakeKeeper{audits: []ledger.Audit{broken("a"), sound("b"), broken("c"), broken("d")}}
	r := newReconciler(k, func(c *Config) { c.MaxRepairs = 1 })
	all, err := collect(r.AuditAll(t.Context(), true))
	if stopped, ok := errors.AsType[*StoppedError](err); !ok || stopped.Repaired != 2 || !errors.Is(err, like.ErrCorrupt) || len(all) != 3 {
		t.Errorf("with repair: %d items, error %v; want 3 and a stop at the second", len(all), err)
	}
	if valueOf(r.metrics.finished) != 0 {
		t.Error("a stopped audit counts as finished")
	}
	if all, err = collect(r.AuditAll(t.Context(), false)); err != nil || len(all) != 4 {
		t.Errorf("dry run: %d items, error %v; want all 4", len(all), err)
	}
}

// TestAsManyRepairsAsAllowed: a run whose last correction is the last that it may
// make came to its end, wherever that correction was.
func TestAsManyRepairsAsAllowed(t *testing.T) {
	for _, audits := range [][]ledger.Audit{
		{broken("a"), sound("b"), broken("c")},
		{broken("a"), broken("b"), sound("c")},
	} {
		r := newReconciler(&fakeKeeper{audits: audits}, func(c *Config) { c.MaxRepairs = 2 })
		all, err := collect(r.AuditAll(t.Context(), true))
		if err != nil || len(all) != 3 || len(r.Runs()) != 1 {
			t.Errorf("%d items, %d runs, error %v; want all 3 and one run", len(all), len(r.Runs()), err)
		}
	}
}

func TestAuditKeepsToItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		audits := make([]ledger.Audit, 100)
		for i := range audits {
			audits[i] = sound(string(rune('a' + i)))
		}
		r := newReconciler(&fakeKeeper{audits: audits, each: time.Millisecond}, func(c *Config) { c.Share = 0.25 })
		begin := time.Now()
		if _, err := collect(r.AuditAll(t.Context(), false)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 395*time.Millisecond || took > 405*time.Millisecond {
			t.Errorf("100 ms of work at a quarter of the time took %v", took)
		}
	})
}

func TestPausedAuditEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReconciler(&fakeKeeper{audits: []ledger.Audit{sound("a")}, each: time.Hour}, func(*Config) {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour+mostPause/2)
		defer cancel()
		if _, err := collect(r.AuditAll(ctx, false)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the context's", err)
		}
	})
}

func TestRunAuditsPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fakeKeeper{audits: []ledger.Audit{broken("a")}, fail: like.ErrUnavailable}
		r := newReconciler(k, func(c *Config) { c.Every = time.Hour })
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if k.runs != 2 || r.counted()["corrected"] != 2 {
			t.Errorf("%d runs, counted %v; want 2 runs that correct, failed or not", k.runs, r.counted())
		}
	})
}

func TestRunWithoutAPeriodReturns(t *testing.T) {
	r := newReconciler(&fakeKeeper{}, func(c *Config) { c.Every = 0 })
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.Every = -1 },
		func(c *Config) { c.MaxRepairs = 0 },
		func(c *Config) { c.Share = 0 },
		func(c *Config) { c.Share = 1.5 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		if err := cfg.Validate(); !errors.Is(err, like.ErrInvalid) {
			t.Errorf("%+v: error %v, want ErrInvalid", cfg, err)
		}
	}
}

func TestRunsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fakeKeeper{audits: []ledger.Audit{sound("a"), broken("b")}, each: time.Second}
		r := newReconciler(k, func(c *Config) { c.Share = 1 })
		for range maxRuns + 5 {
			if _, err := collect(r.AuditAll(t.Context(), true)); err != nil {
				t.Fatal(err)
			}
		}
		k.audits, k.fail = nil, like.ErrUnavailable
		if _, err := collect(r.AuditAll(t.Context(), true)); err == nil {
			t.Fatal("an audit that failed came to its end")
		}
		runs := r.Runs()
		want := Run{Ended: time.Now(), Took: 2 * time.Second, Items: 2, Drifted: 1, Repaired: 1}
		if len(runs) != maxRuns || runs[maxRuns-1] != want || !runs[0].Ended.Before(want.Ended) {
			t.Errorf("%d runs, the last %+v, want %+v", len(runs), runs[len(runs)-1], want)
		}
	})
}

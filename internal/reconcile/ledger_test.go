package reconcile

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

// TestLaggingTotalsAreNoDrift audits and repairs a ledger while totals are on
// their way: what only lags is left alone, and what is broken is mended once.
func TestLaggingTotalsAreNoDrift(t *testing.T) {
	for _, lag := range []time.Duration{0, time.Second} {
		t.Run(lag.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := memory.New(memory.Config{Lag: lag})
				defer l.Close()
				repairs(t, l, lag)
			})
		})
	}
}

func repairs(t *testing.T, l *memory.Ledger, lag time.Duration) {
	r := newReconciler(l, func(*Config) {})
	likeAll := func(users ...like.User) {
		for _, id := range []string{"sound", "skewed", "unlisted", "phantom"} {
			for _, user := range users {
				if _, err := l.Apply(t.Context(), like.Command{Item: item(id), User: user, Op: like.OpLike}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	audit := func() (drifted []ledger.Audit) {
		all, err := collect(r.AuditAll(t.Context(), true))
		if err != nil || len(all) != 4 {
			t.Fatalf("audited %d items, error %v", len(all), err)
		}
		for _, a := range all {
			if a.Drift() {
				drifted = append(drifted, a)
			}
		}
		return drifted
	}

	likeAll("ann", "bob")
	if found := audit(); found != nil {
		t.Errorf("drift in a sound ledger: %+v", found)
	}
	l.Skew(item("skewed"), 5)
	l.Unlist(item("unlisted"), "ann")
	l.Phantom(like.Fact{Item: item("phantom"), User: "nobody", Since: 1})
	likeAll("cid")
	want := []ledger.Audit{
		{Item: item("phantom"), Facts: 3, Total: 3, Phantom: 1, Repaired: true},
		{Item: item("skewed"), Facts: 3, Total: 8, Repaired: true},
		{Item: item("unlisted"), Facts: 3, Total: 3, Unlisted: 1, Repaired: true},
	}
	if diff := cmp.Diff(want, audit()); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if found := audit(); found != nil {
		t.Errorf("drift after a repair: %+v", found)
	}
	time.Sleep(lag)
	items := []like.Item{item("sound"), item("skewed"), item("unlisted"), item("phantom")}
	totals, err := l.Totals(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	for _, total := range totals {
		if total.Count != 3 {
			t.Errorf("%v settled at %d, want 3", total.Item, total.Count)
		}
	}
}

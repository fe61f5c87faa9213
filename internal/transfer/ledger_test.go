package transfer

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

// TestRoundTrip imports into a ledger and exports again, while totals are behind
// and when they have come.
func TestRoundTrip(t *testing.T) {
	for _, lag := range []time.Duration{0, time.Second} {
		t.Run(lag.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := func() time.Time { return time.Now().AddDate(50, 0, 0) } // the likes are of 2026
				l := memory.New(memory.Config{Lag: lag, Now: now})
				defer l.Close()
				roundTrip(t, l, lag)
			})
		})
	}
}

func roundTrip(t *testing.T, l ledger.Ledger, lag time.Duration) {
	_, lines := users(60)
	slices.Sort(lines)
	send := func(ctx context.Context, cmds []like.Command) error {
		_, err := l.ApplyMany(ctx, cmds)
		return err
	}
	path := writeInput(t, "likes.ndjson", lines...)
	for range 2 { // a second import changes nothing
		sum, err := Import(t.Context(), config(path, new(bytes.Buffer)), send)
		if err != nil || sum != (Summary{Lines: 60, Accepted: 60}) {
			t.Fatalf("summary %+v, error %v", sum, err)
		}
		output := filepath.Join(t.TempDir(), "out.ndjson")
		in := Lines(l.Export(t.Context()))
		defer in.Close()
		if n, err := Export(in, output, nil); err != nil || n != 60 {
			t.Fatalf("exported %d, error %v", n, err)
		}
		got := slices.Sorted(strings.Lines(readAll(t, output)))
		if diff := cmp.Diff(strings.Join(lines, "\n")+"\n", strings.Join(got, "")); diff != "" {
			t.Errorf("exported (-want +got):\n%s", diff)
		}
		tally, err := Reconcile(t.Context(), l, true, func(a ledger.Audit) { t.Errorf("drift %+v", a) })
		if err != nil || tally != (Tally{Items: 1}) {
			t.Errorf("audited %+v, error %v", tally, err)
		}
	}
	time.Sleep(lag)
	totals, err := l.Totals(t.Context(), []like.Item{{Collection: "posts", ID: "1"}})
	if err != nil || totals[0].Count != 60 {
		t.Errorf("totals %+v, error %v", totals, err)
	}
}

// TestImportBoundsWhatItHolds checks that one batch that takes long does not let
// the rest of the input pile up behind it.
func TestImportBoundsWhatItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, lines := users(1000)
		cfg := config(writeInput(t, "likes.ndjson", lines...), new(bytes.Buffer))
		cfg.BatchSize, cfg.SaveEvery = 1, time.Hour
		var s sink
		slow := make(chan struct{})
		ended := make(chan error)
		go func() {
			sum, err := Import(t.Context(), cfg, func(ctx context.Context, cmds []like.Command) error {
				if cmds[0].User == "u00" {
					<-slow
				}
				return s.send(ctx, cmds)
			})
			if err == nil && sum.Accepted != 1000 {
				err = fmt.Errorf("accepted %d", sum.Accepted)
			}
			ended <- err
		}()
		synctest.Wait()
		if most := maxAhead * cfg.InFlight; s.calls == 0 || s.calls >= most {
			t.Errorf("%d batches went before the first, want fewer than %d", s.calls, most)
		}
		close(slow)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

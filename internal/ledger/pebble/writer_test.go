package pebble

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/like"
)

// TestDamageFailsOnlyWhatReadsIt puts likes of an item whose total cannot be read
// into the same batches as those of another: only the former may fail.
func TestDamageFailsOnlyWhatReadsIt(t *testing.T) {
	cfg := testConfig(t, newCrashFS(), time.Now)
	cfg.FilterBytes = 0 // it would say that the total, written behind its back, is absent
	l := openTest(t, cfg)
	bad, good := like.Item{Collection: "posts", ID: "bad"}, like.Item{Collection: "posts", ID: "good"}
	if err := l.db.Set(totalKey(bad), []byte{0xff}, pdb.Sync); err != nil {
		t.Fatal(err)
	}
	const users, likes = 32, 20
	var failed atomic.Int64
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			for n := range likes {
				user := like.User(string(rune('A'+u)) + string(rune('a'+n)))
				if _, err := l.Apply(t.Context(), like.Command{Item: good, User: user, Op: like.OpLike}); err != nil {
					t.Errorf("a like of the sound item: %v", err)
				}
				_, err := l.Apply(t.Context(), like.Command{Item: bad, User: user, Op: like.OpLike})
				if errors.Is(err, like.ErrCorrupt) {
					failed.Add(1)
				} else if err != nil {
					t.Errorf("a like of the damaged item: %v, want ErrCorrupt", err)
				}
			}
		})
	}
	wg.Wait()
	totals, err := l.Totals(t.Context(), []like.Item{good})
	if err != nil || totals[0].Count != users*likes {
		t.Errorf("total of the sound item: %v, %v, want %d", totals, err, users*likes)
	}
	if failed.Load() == 0 {
		t.Error("no like of the damaged item failed: the filter hid the damage")
	}
}

// Package footprint measures what the running program costs when nobody asks for
// anything: the time until it is ready and its resident memory, with an empty
// store and with a million likes. It prints both, and fails only far above what is
// promised where a busy machine has its part in it. It runs only in full size.
package footprint

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	likes     = 1_000_000
	items     = 1_000
	idleAfter = 5 * time.Second
	maxFresh  = 64 << 20
	maxReady  = 10 * time.Second // promised: 1 s
)

func TestFootprint(t *testing.T) {
	harness.SkipUnlessHeavy(t, "a million likes take a while")
	keys := harness.NewKeys(t)
	node := harness.NewNode(t, harness.NodeConfig{Keys: keys})
	client := harness.NewClient([]string{node.URL}, []string{node.AdminURL}, keys)
	defer client.Close()

	measure := func(what string) (idle int64) {
		t.Helper()
		ready := node.StartReady(t.Context())
		<-time.After(idleAfter)
		idle = node.RSS()
		t.Logf("%s: ready after %v, %.1f MiB resident after %v", what, ready.Round(time.Millisecond), float64(idle)/(1<<20), idleAfter)
		if ready > maxReady {
			t.Errorf("%s: ready after %v, want at most %v", what, ready, maxReady)
		}
		return idle
	}
	if idle := measure("a fresh store"); idle >= maxFresh {
		t.Errorf("%d bytes resident with a fresh store, want less than %d", idle, maxFresh)
	}
	if err := fill(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	node.Stop()
	measure("a million likes")
	node.Kill()
	measure("a million likes, after a kill")
	counts, err := client.Counts(t.Context(), "", item(0))
	if err != nil || counts[0].Count != likes/items {
		t.Errorf("counts %+v, error %v, want %d", counts, err, likes/items)
	}
	client.Close()
	node.Stop()
}

func item(k int) harness.Item { return harness.Post(fmt.Sprint(k)) }

// fill likes every item as a thousand users, through batches.
func fill(ctx context.Context, client *harness.Client) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for k := range items {
		group.Go(func() error {
			batch := make([]harness.Command, likes/items)
			for u := range batch {
				batch[u] = harness.Command{Op: "like", Item: item(k), User: fmt.Sprintf("user-%d", u*items+k)}
			}
			return client.Batch(ctx, batch)
		})
	}
	return group.Wait()
}

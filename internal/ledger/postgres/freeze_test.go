package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"likewise/internal/like"
	"likewise/test/servers"
)

// A node stands still for every node, in every database, and all move on when it dies.
func TestFreezeHoldsForAllNodes(t *testing.T) {
	t.Parallel()
	cfg := hasty(servers.Database(t), servers.Database(t), servers.Database(t))
	both := openNodes(t, cfg, 2)
	dying, other := both.all[0], both.all[1]
	var death sync.WaitGroup
	defer death.Wait()
	err := dying.Freeze(t.Context(), func(ctx context.Context) error {
		for n := range 20 {
			_, err := other.Apply(ctx, like.Command{Item: postN(n), User: "u", Op: like.OpLike})
			if !errors.Is(err, like.ErrUnavailable) {
				t.Errorf("%v is liked at a standstill: %v", postN(n), err)
			}
		}
		death.Go(func() { crash(dying) })
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, like.ErrClosed) && !errors.Is(err, like.ErrUnavailable) {
		t.Errorf("a standstill whose node died ended with %v", err)
	}
	for n := range 20 {
		eventually(t, "the other node moves on", func() bool {
			_, err := other.Apply(t.Context(), like.Command{Item: postN(n), User: "u", Op: like.OpLike})
			return err == nil
		})
	}
}

// A standstill that was lost is never taken for one that held.
func TestFreezeTellsThatItWasLost(t *testing.T) {
	t.Parallel()
	url := servers.Database(t)
	both := openNodes(t, hasty(url), 2)
	sever := func() {
		t.Helper()
		_, err := connect(t, url).Exec(t.Context(), `SELECT pg_terminate_backend(l.pid, 10000) FROM pg_locks l
			JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
			WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND l.pid <> pg_backend_pid()`)
		if err != nil {
			t.Error(err)
		}
	}
	err := both.all[0].Freeze(t.Context(), func(context.Context) error {
		sever()
		apply(t, both.all[1], like.Command{Item: post("1"), User: "u", Op: like.OpLike})
		return nil
	})
	if !errors.Is(err, like.ErrUnavailable) {
		t.Errorf("a like came through, and the standstill ended with %v", err)
	}
	err = both.all[0].Freeze(t.Context(), func(ctx context.Context) error {
		sever()
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
			t.Error("the loss is not told")
		}
		return context.Cause(ctx)
	})
	if !errors.Is(err, like.ErrUnavailable) {
		t.Errorf("a standstill that was lost ended with %v", err)
	}
}

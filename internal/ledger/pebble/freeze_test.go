package pebble

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"likewise/internal/like"
)

// TestFreezeOnAFullDisk moves away what is on a disk that takes no more commands,
// and accepts what changes nothing.
func TestFreezeOnAFullDisk(t *testing.T) {
	mem := vfs.NewCrashableMem()
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 50 << 30, TotalBytes: 100 << 30})
	l, err := open(drillConfig(mem))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := like.Command{Item: like.Item{Collection: "posts", ID: "1"}, User: "u", Op: like.OpLike}
	if _, err := l.Apply(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 20, TotalBytes: 100 << 30})
	called := false
	err = l.Freeze(t.Context(), func(context.Context) error { called = true; return nil })
	if err != nil || !called {
		t.Errorf("Freeze: %v", err)
	}
	if ack, err := l.Apply(t.Context(), cmd); err != nil || ack.Count != 1 {
		t.Errorf("a repeat on a full disk: %+v, %v", ack, err)
	}
	cmd.Op = like.OpUnlike
	if _, err := l.Apply(t.Context(), cmd); !errors.Is(err, like.ErrUnavailable) {
		t.Errorf("an unlike on a full disk: %v, want ErrUnavailable", err)
	}
}

// TestFreezeWaitsItsTurn freezes a ledger whose queue refuses more.
func TestFreezeWaitsItsTurn(t *testing.T) {
	cfg := testConfig(t, newCrashFS(), time.Now)
	cfg.QueueLength, cfg.QueueAge = 1, 100*time.Millisecond // a tenth of it is waited for a place
	l := openTest(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = l.Apply(ctx, like.Command{Item: like.Item{Collection: "posts", ID: "1"}, User: "u", Op: like.OpLike})
		}
	}()
	for range 100 {
		if err := l.Freeze(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("Freeze: %v", err)
		}
	}
	stop()
	<-done
}

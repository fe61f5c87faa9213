package pebble

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"likewise/internal/like"
)

// TestDrillDiskNearlyFull is drill 7: commands are refused before the disk is full,
// reads go on, and commands are accepted again when there is room.
func TestDrillDiskNearlyFull(t *testing.T) {
	mem := vfs.NewCrashableMem()
	free := func(bytes uint64) {
		mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: bytes, TotalBytes: 100 << 30})
	}
	free(50 << 30)
	cfg := drillConfig(mem)
	cfg.OnFatal = func(err error) { t.Errorf("a full disk ended the ledger: %v", err) }
	l, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := newScript(newRand(drillSeed(t)), 40)
	never := func() bool { return false }
	if err := s.run(l, 3, never, func(int) {}); err != nil {
		t.Fatal(err)
	}
	facts := s.states[len(s.calls)].facts
	batch := []like.Command{
		{Item: like.Item{Collection: "posts", ID: "1"}, User: "new", Op: like.OpLike},
		{Item: like.Item{Collection: "posts", ID: "new"}, User: "u1", Op: like.OpLike},
	}
	free(1<<30 - 1)
	for range 3 {
		_, err := l.ApplyMany(t.Context(), batch)
		if !errors.Is(err, like.ErrUnavailable) || !strings.Contains(err.Error(), "nearly full") {
			t.Errorf("a call got %v, want unavailable because the disk is nearly full", err)
		}
		if err := l.Ready(t.Context()); !errors.Is(err, like.ErrUnavailable) {
			t.Errorf("Ready: %v, want unavailable", err)
		}
		if err := checkViews(l, facts); err != nil {
			t.Errorf("after a refused call: %v", err)
		}
	}
	free(1 << 30)
	if err := l.Ready(t.Context()); err != nil {
		t.Errorf("Ready with room again: %v", err)
	}
	acks, err := l.ApplyMany(t.Context(), batch)
	if err != nil {
		t.Fatalf("a call with room again: %v", err)
	}
	for i, a := range acks {
		facts = append(facts, like.Fact{Item: batch[i].Item, User: batch[i].User, Since: a.State.Since})
	}
	if err := checkViews(l, facts); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestDrillDiskFullInFlush is drill 7 where the space ends during a flush: the engine
// tries again, and no acknowledged like is lost.
func TestDrillDiskFullInFlush(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var fired atomic.Int64
	cfg := drillConfig(faultFS(mem, func(op errorfs.Op) error {
		if path.Ext(op.Path) == ".sst" && isWrite(op) && fired.Add(1) <= 20 {
			return syscall.ENOSPC
		}
		return nil
	}))
	cfg.OnFatal = func(err error) { t.Errorf("a full disk in a flush ended the ledger: %v", err) }
	l, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := newScript(newRand(drillSeed(t)), 300)
	if err := s.run(l, 3, func() bool { return false }, func(int) {}); err != nil {
		t.Error(err)
	}
	if fired.Load() <= 20 {
		t.Errorf("only %d writes of tables; the drill is too small", fired.Load())
	}
	disk := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := s.verify(drillConfig(disk), len(s.calls)); err != nil {
		t.Error(err)
	}
}

// stall is a disk whose syncs of one kind of file block while it is on.
type stall struct {
	ext  string
	on   atomic.Bool
	hits atomic.Int64
	gate chan struct{}
}

func (s *stall) hook(op errorfs.Op) error {
	if s.on.Load() && path.Ext(op.Path) == s.ext && isSync(op) {
		s.hits.Add(1)
		<-s.gate
	}
	return nil
}

// callers like one item, each as a user of its own.
type callers struct {
	ledger *Ledger
	wg     sync.WaitGroup
	calls  []*answered
}

var stallItem = like.Item{Collection: "posts", ID: "1"}

// call returns when the call is done or waits, so that the next comes behind it.
func (c *callers) call(ctx context.Context, user string) *answered {
	a := &answered{user: like.User(user)}
	c.calls = append(c.calls, a)
	c.wg.Go(func() {
		ack, err := c.ledger.Apply(ctx, like.Command{Item: stallItem, User: a.user, Op: like.OpLike})
		a.done, a.err, a.ack = true, err, ack.State
	})
	synctest.Wait()
	return a
}

// answered is what became of one caller.
type answered struct {
	user like.User
	done bool
	err  error
	ack  like.State
}

// TestDrillDiskStall is drill 8: a sync does not return for a while. The queue is
// bounded by length and by age, callers leave when they want, and afterwards each call
// was either acknowledged and is there, or refused and is not.
func TestDrillDiskStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &stall{ext: logSuffix, gate: make(chan struct{})}
		cfg := drillConfig(faultFS(vfs.NewCrashableMem(), disk.hook))
		cfg.QueueLength, cfg.QueueAge = 5, time.Second
		l, err := open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c := &callers{ledger: l}
		call := c.call
		if a := call(t.Context(), "before"); !a.done || a.err != nil {
			t.Fatalf("before the stall: %+v", a)
		}
		disk.on.Store(true)
		left := errors.New("left")
		ctx, leave := context.WithCancelCause(t.Context())
		first := call(ctx, "leaves")
		leave(left)
		synctest.Wait()
		if !first.done || !errors.Is(first.err, left) {
			t.Errorf("a caller that left got %+v, want its own cause", first)
		}
		var full *answered
		for user := range strings.SplitSeq("abcdefghijklmnopqrstuvwxyz", "") {
			if full = call(t.Context(), user); full.done {
				break
			}
		}
		if !full.done || !errors.Is(full.err, like.ErrOverloaded) {
			t.Errorf("no call was refused for the length of the queue: %+v", full)
		}
		if err := l.Ready(t.Context()); err != nil {
			t.Errorf("Ready at the start of the stall: %v", err)
		}
		time.Sleep(cfg.QueueAge + time.Millisecond)
		if late := call(t.Context(), "late"); !late.done || !errors.Is(late.err, like.ErrOverloaded) {
			t.Errorf("a call late in the stall: %+v, want overloaded at once", late)
		}
		if err := l.Ready(t.Context()); !errors.Is(err, like.ErrOverloaded) {
			t.Errorf("Ready in the stall: %v, want overloaded", err)
		}
		disk.on.Store(false)
		close(disk.gate)
		c.wg.Wait()
		if disk.hits.Load() == 0 {
			t.Error("no sync was stalled")
		}
		c.check(t)
		if err := l.Ready(t.Context()); err != nil {
			t.Errorf("Ready after the stall: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// check compares what callers were told with what the ledger holds.
func (c *callers) check(t *testing.T) {
	t.Helper()
	var last like.Stamp
	told := map[string]int{}
	for _, a := range c.calls {
		states, err := c.ledger.Liked(t.Context(), a.user, []like.Item{stallItem})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case a.err == nil:
			told["acknowledged"]++
			if states[0] != a.ack {
				t.Errorf("%s was told %+v and is %+v", a.user, a.ack, states[0])
			}
			if a.ack.Since <= last {
				t.Errorf("%s has stamp %d, not behind %d of the call before", a.user, a.ack.Since, last)
			}
			last = a.ack.Since
		case errors.Is(a.err, like.ErrOverloaded):
			told["refused"]++
			if states[0].Liked {
				t.Errorf("%s was refused and is liked", a.user)
			}
		}
	}
	t.Logf("%d calls: %v", len(c.calls), told)
	if told["acknowledged"] < 2 || told["refused"] < 3 { // by length, by age, and what waited too long
		t.Errorf("told %v; want some of both", told)
	}
}

// TestDrillStalledAtRest is drill 8 with nothing in the queue: Ready still tells that the
// disk does not answer, and new calls are refused. A stalled log holds back the first
// answer, stalled tables fill the memtables first.
func TestDrillStalledAtRest(t *testing.T) {
	for _, ext := range []string{logSuffix, ".sst"} {
		t.Run(ext, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { stalledAtRest(t, ext) }) })
	}
}

func stalledAtRest(t *testing.T, ext string) {
	disk := &stall{ext: ext, gate: make(chan struct{})}
	mem := vfs.NewCrashableMem()
	cfg := drillConfig(faultFS(mem, disk.hook))
	cfg.QueueAge = time.Second
	l, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	disk.on.Store(true)
	s := newScript(newRand(drillSeed(t)), 500)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.run(l, 1, func() bool { return !disk.on.Load() }, func(int) {}); err != nil {
			t.Errorf("the stalled call: %v", err)
		}
	})
	time.Sleep(time.Minute)
	cmd := like.Command{Item: like.Item{Collection: "posts", ID: "1"}, User: "u", Op: like.OpLike}
	if _, err := l.Apply(t.Context(), cmd); !errors.Is(err, like.ErrOverloaded) {
		t.Errorf("a call in the stall: %v, want overloaded", err)
	}
	if err := l.Ready(t.Context()); !errors.Is(err, like.ErrOverloaded) {
		t.Errorf("Ready in the stall: %v, want overloaded", err)
	}
	disk.on.Store(false)
	close(disk.gate)
	wg.Wait()
	if disk.hits.Load() == 0 {
		t.Error("no sync was stalled")
	}
	if err := errors.Join(l.Ready(t.Context()), l.Close()); err != nil {
		t.Error(err)
	}
	at, err := reached(s, mem)
	if err == nil {
		err = s.verify(drillConfig(mem), at)
	}
	if err != nil {
		t.Error(err)
	}
}

// reached returns after which call of the script a closed store ends.
func reached(s *script, mem *vfs.MemFS) (int, error) {
	l, err := open(drillConfig(mem))
	if err != nil {
		return 0, err
	}
	at, err := s.position(l)
	return at, errors.Join(err, l.Close())
}

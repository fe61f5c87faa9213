package pebble

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"likewise/internal/like"
)

// crasher takes a copy of the disk at one operation that changes it, as a crash at
// that moment could leave it.
type crasher struct {
	mem    *vfs.MemFS
	rng    *rand.Rand
	at     int64 // the operation, counted from 1
	keep   int   // percentage of unsynced blocks and names that survive
	kill   bool  // wait for a sync of the log, and keep what is unsynced as well
	before func()

	count atomic.Int64
	taken atomic.Bool
	fired atomic.Bool
	disk  *vfs.MemFS // the copy; read it after fired
	held  *vfs.MemFS // with everything unsynced, when kill is set
	op    errorfs.Op // where it was taken
}

func (c *crasher) hook(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || c.count.Add(1) < c.at {
		return nil
	}
	if c.kill && !(isSync(op) && path.Ext(op.Path) == logSuffix) || !c.taken.CompareAndSwap(false, true) {
		return nil
	}
	if c.before != nil {
		c.before()
	}
	c.op = op
	if c.kill {
		c.held = c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: c.rng})
	}
	c.disk = c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.keep, RNG: c.rng})
	c.fired.Store(true)
	return nil
}

// newCrasher chooses how much of what is unsynced survives: often nothing or
// everything, else a part.
func newCrasher(mem *vfs.MemFS, r *rand.Rand, at int64) *crasher {
	keep := []int{0, 0, 100, r.IntN(101)}[r.IntN(4)]
	return &crasher{mem: mem, rng: r, at: at, keep: keep}
}

// outcome is what a crash run left: the disk, and how much was acknowledged before
// the crash began.
type outcome struct {
	*crasher
	script *script
	acked  int
}

// crashMode is what kind of crash is played.
type crashMode int

const (
	powerLoss crashMode = iota
	lyingDisk           // every sync is a lie: the mutant that shows the drill can see a loss
	killed              // only the process ends; what it wrote is in crasher.held
)

// crashRun runs a script on a new store and crashes at operation at.
func crashRun(r *rand.Rand, at int64, mode crashMode) (outcome, error) {
	mem := vfs.NewCrashableMem()
	window := 1 + r.IntN(6)
	o := outcome{crasher: newCrasher(mem, r, at), script: newScript(r, int(max(120, at)))}
	if o.kill = mode == killed; mode != powerLoss {
		o.keep = 0
	}
	var acked atomic.Int64
	o.before = func() { o.acked = int(acked.Load()) }
	fs := faultFS(mem, o.hook)
	if mode == lyingDisk {
		fs = lyingFS{fs}
	}
	l, err := open(drillConfig(fs))
	if err != nil {
		return o, fmt.Errorf("open a new store: %w", err)
	}
	err = o.script.run(l, window, o.fired.Load, func(n int) { acked.Store(int64(n)) })
	if err := l.Close(); err != nil {
		return o, fmt.Errorf("close: %w", err)
	}
	return o, err
}

// crashAt crashes at the operation, or at an earlier one when the run is shorter.
func crashAt(seed uint64, at int64, mode crashMode) (outcome, error) {
	for ; ; at = (at + 1) / 2 {
		if o, err := crashRun(newRand(seed), at, mode); err != nil || o.fired.Load() {
			return o, err
		}
	}
}

// places counts at which kind of file crashes fell, so that a drill can show that it
// reached them all.
type places struct {
	mu   sync.Mutex
	hits map[string]int
}

func (p *places) add(op errorfs.Op) {
	kind := path.Ext(op.Path)
	switch base := path.Base(op.Path); {
	case strings.HasPrefix(base, "MANIFEST"), base == markerName:
		kind, _, _ = strings.Cut(base, "-")
	case kind != ".log" && kind != ".sst":
		kind = "other"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hits == nil {
		p.hits = map[string]int{}
	}
	p.hits[kind]++
}

func (p *places) require(t *testing.T, kinds ...string) {
	t.Helper()
	t.Logf("crashes by file: %v", p.hits)
	for _, kind := range kinds {
		if p.hits[kind] == 0 {
			t.Errorf("no crash fell on a %s file; the drill is too small", kind)
		}
	}
}

// eachPoint calls drill for 0 to n-1, on as many goroutines as there are processors,
// until one fails.
func eachPoint(t *testing.T, n int, drill func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < n && !t.Failed(); i = next.Add(1) - 1 {
				if err := drill(int(i)); err != nil {
					t.Errorf("point %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
}

// describe adds what is needed to repeat a failed crash.
func (o outcome) describe(seed uint64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("LIKEWISE_SEED=%d: crash at operation %d, %v, %d %% kept, %d calls acknowledged: %w",
		seed, o.at, o.op, o.keep, o.acked, err)
}

// TestDrillCrashAnywhere is drill 1: a crash at a random operation.
func TestDrillCrashAnywhere(t *testing.T) {
	seed := drillSeed(t)
	var hit places
	eachPoint(t, heavy(120, 10_000), func(i int) error {
		seed := seed + uint64(i)
		o, err := crashAt(seed, 1+newRand(seed).Int64N(700), powerLoss)
		if err == nil {
			err = o.script.verify(drillConfig(o.disk), o.acked)
		}
		hit.add(o.op)
		return o.describe(seed, err)
	})
	hit.require(t, ".log", ".sst", markerName, "other")
}

// TestDrillCrashEverywhere is drill 2: a crash at each of the first operations of one
// run, from the creation of the directory on.
func TestDrillCrashEverywhere(t *testing.T) {
	seed := drillSeed(t)
	var hit places
	eachPoint(t, heavy(120, 2000), func(i int) error {
		o, err := crashRun(newRand(seed), int64(1+i), powerLoss)
		if !o.fired.Load() {
			err = fmt.Errorf("the run ended before the crash: %w", err)
		}
		if err == nil {
			err = o.script.verify(drillConfig(o.disk), o.acked)
		}
		hit.add(o.op)
		return o.describe(seed, err)
	})
	hit.require(t, ".log", "MANIFEST", markerName, "other")
}

// TestDrillCrashInRecovery is drill 3: the machine crashes again while it recovers,
// three times deep.
func TestDrillCrashInRecovery(t *testing.T) {
	seed := drillSeed(t)
	var deepest atomic.Int64
	eachPoint(t, heavy(30, 3000), func(i int) error {
		seed := seed + uint64(i)
		r := newRand(seed)
		o, err := crashAt(seed, 1+r.Int64N(700), powerLoss)
		if err != nil {
			return o.describe(seed, err)
		}
		disk, trail := o.disk, []string{}
		for range 3 {
			c := newCrasher(disk, r, 1+r.Int64N(60))
			l, err := open(drillConfig(faultFS(disk, c.hook)))
			if err == nil {
				err = l.Close()
			}
			if err != nil {
				return o.describe(seed, fmt.Errorf("recovery after %v: %w", trail, err))
			}
			if c.fired.Load() {
				disk = c.disk
				trail = append(trail, fmt.Sprintf("%d %v %d %%", c.at, c.op, c.keep))
				deepest.Add(1)
			}
		}
		return o.describe(seed, o.script.verify(drillConfig(disk), o.acked))
	})
	if n := deepest.Load(); n < int64(heavy(30, 3000)) {
		t.Errorf("only %d crashes fell into a recovery", n)
	}
}

// TestDrillCrashSeesLoss runs drill 1 on a disk that lies about its syncs: a drill
// that finds no loss there would find none anywhere.
func TestDrillCrashSeesLoss(t *testing.T) {
	seed := drillSeed(t)
	for i := range uint64(50) {
		o, err := crashAt(seed+i, 400, lyingDisk)
		if err != nil {
			t.Fatal(o.describe(seed+i, err))
		}
		if err := o.script.verify(drillConfig(o.disk), o.acked); o.acked > 0 && err == nil {
			t.Fatalf("seed %d: %d calls were acknowledged, nothing was synced, and no loss was seen", seed+i, o.acked)
		} else if err != nil {
			t.Logf("seen: %v", err)
			return
		}
	}
	t.Error("no run acknowledged anything before its crash")
}

// TestDrillKillThenPowerLoss kills the process, whose writes the kernel still holds, and
// cuts the power when the next process has acknowledged what it found: no answer may
// rest on a log that nobody synced.
func TestDrillKillThenPowerLoss(t *testing.T) {
	seed := drillSeed(t)
	var unsynced atomic.Int64
	eachPoint(t, heavy(25, 2000), func(i int) error {
		seed := seed + uint64(i)
		o, err := crashAt(seed, 100+newRand(seed).Int64N(300), killed)
		if err == nil {
			var grown bool
			if grown, err = restoreUnsynced(o.disk, o.held); grown {
				unsynced.Add(1)
			}
		}
		if err == nil {
			o.disk, o.acked, err = repeatAll(o.script, o.disk, o.acked)
		}
		if err == nil {
			err = o.script.verify(drillConfig(o.disk), o.acked)
		}
		return o.describe(seed, err)
	})
	t.Logf("%d kills left an unsynced end of the log", unsynced.Load())
	if unsynced.Load() == 0 {
		t.Error("no kill left an unsynced end of a log")
	}
}

// restoreUnsynced writes to disk what held has beyond it in the logs, without a sync.
func restoreUnsynced(disk, held *vfs.MemFS) (grown bool, err error) {
	dir := path.Join(drillConfig(nil).Dir, engineDir)
	names, err := disk.List(dir)
	if err != nil {
		return false, nil // the crash came before there was a store
	}
	for _, name := range names {
		file := path.Join(dir, name)
		all, heldErr := readFile(held, file)
		if path.Ext(name) != logSuffix || heldErr != nil {
			continue
		}
		synced, err := readFile(disk, file)
		if err != nil || len(all) <= len(synced) {
			continue
		}
		f, err := disk.OpenReadWrite(file, "drill")
		if err != nil {
			return false, err
		}
		_, err = f.WriteAt(all[len(synced):], int64(len(synced)))
		if err := errors.Join(err, f.Close()); err != nil {
			return false, err
		}
		grown = true
	}
	return grown, nil
}

// repeatAll opens a store and repeats every like that it holds. It returns what a power
// loss after that leaves, and how many calls of the script are acknowledged by then.
func repeatAll(s *script, disk *vfs.MemFS, acked int) (*vfs.MemFS, int, error) {
	l, err := open(drillConfig(disk))
	if err != nil {
		return nil, 0, err
	}
	ctx := context.Background()
	for f, err := range l.Export(ctx) {
		if err == nil {
			_, err = l.Apply(ctx, like.Command{Item: f.Item, User: f.User, Op: like.OpLike})
			acked, _ = s.position(l)
		}
		if err != nil {
			return nil, 0, errors.Join(err, l.Close())
		}
	}
	after := disk.CrashClone(vfs.CrashCloneCfg{})
	return after, acked, l.Close()
}

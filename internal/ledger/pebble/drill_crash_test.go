package pebble

import (
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
)

// crasher takes a copy of the disk at one operation that changes it, as a crash at
// that moment could leave it.
type crasher struct {
	mem    *vfs.MemFS
	rng    *rand.Rand
	at     int64 // the operation, counted from 1
	keep   int   // percentage of unsynced blocks and names that survive
	before func()

	count atomic.Int64
	fired atomic.Bool
	disk  *vfs.MemFS // the copy; read it after fired
	op    errorfs.Op // where it was taken
}

func (c *crasher) hook(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && c.count.Add(1) == c.at {
		if c.before != nil {
			c.before()
		}
		c.op = op
		c.disk = c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.keep, RNG: c.rng})
		c.fired.Store(true)
	}
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

// crashRun runs a script on a new store and crashes at operation at. lie makes every
// sync a lie; it is the mutant that shows the drill can see a loss.
func crashRun(r *rand.Rand, at int64, lie bool) (outcome, error) {
	mem := vfs.NewCrashableMem()
	o := outcome{crasher: newCrasher(mem, r, at), script: newScript(r, 120)}
	if lie {
		o.keep = 0
	}
	var acked atomic.Int64
	o.before = func() { o.acked = int(acked.Load()) }
	fs := faultFS(mem, o.hook)
	if lie {
		fs = lyingFS{fs}
	}
	l, err := open(drillConfig(fs))
	if err != nil {
		return o, fmt.Errorf("open a new store: %w", err)
	}
	err = o.script.run(l, 1+r.IntN(6), o.fired.Load, func(n int) { acked.Store(int64(n)) })
	if err := l.Close(); err != nil {
		return o, fmt.Errorf("close: %w", err)
	}
	return o, err
}

// crashAt crashes at the operation, or at an earlier one when the run is shorter.
func crashAt(seed uint64, at int64, lie bool) (outcome, error) {
	for ; ; at = (at + 1) / 2 {
		if o, err := crashRun(newRand(seed), at, lie); err != nil || o.fired.Load() {
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
	eachPoint(t, heavy(200, 10_000), func(i int) error {
		seed := seed + uint64(i)
		o, err := crashAt(seed, 1+newRand(seed).Int64N(700), false)
		if err == nil {
			err = o.script.verify(drillConfig(o.disk), o.acked)
		}
		hit.add(o.op)
		return o.describe(seed, err)
	})
	hit.require(t, ".log", ".sst", "MANIFEST", markerName, "other")
}

// TestDrillCrashEverywhere is drill 2: a crash at each of the first operations of one
// run, from the creation of the directory on.
func TestDrillCrashEverywhere(t *testing.T) {
	seed := drillSeed(t)
	var hit places
	eachPoint(t, heavy(150, 2000), func(i int) error {
		o, err := crashRun(newRand(seed), int64(1+i), false)
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
	eachPoint(t, heavy(60, 3000), func(i int) error {
		seed := seed + uint64(i)
		r := newRand(seed)
		o, err := crashAt(seed, 1+r.Int64N(700), false)
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
	if n := deepest.Load(); n < int64(heavy(60, 3000)) {
		t.Errorf("only %d crashes fell into a recovery", n)
	}
}

// TestDrillCrashSeesLoss runs drill 1 on a disk that lies about its syncs: a drill
// that finds no loss there would find none anywhere.
func TestDrillCrashSeesLoss(t *testing.T) {
	seed := drillSeed(t)
	for i := range uint64(50) {
		o, err := crashAt(seed+i, 400, true)
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

package pebble

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// crash is a machine that stopped in front of one operation on its disk.
type crash struct {
	at    int64      // the operation, counted from 1 over those that change the disk
	op    errorfs.Op // what it was
	acked int        // calls that were acknowledged before
	keep  int        // percentage of unsynced blocks and names that survived
	disk  *vfs.MemFS
	rng   *rand.Rand
}

func (c crash) String() string {
	return fmt.Sprintf("crash at operation %d %+v, %d %% of the unsynced kept, %d calls acknowledged",
		c.at, c.op, c.keep, c.acked)
}

// crasher crashes at some operations of a run, which goes on regardless.
type crasher struct {
	mem  *vfs.MemFS
	seed uint64
	pick func(at int64, op errorfs.Op) bool
	each func(c crash) error

	acked, count, crashes atomic.Int64
	failed                atomic.Pointer[error]
}

func (cr *crasher) hook(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	at := cr.count.Add(1)
	if !cr.pick(at, op) || cr.failed.Load() != nil {
		return nil
	}
	r := newRand(cr.seed + uint64(at))
	c := crash{at: at, op: op, acked: int(cr.acked.Load()), keep: []int{0, 0, 100, r.IntN(101)}[r.IntN(4)], rng: r}
	c.disk = cr.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.keep, RNG: r})
	cr.crashes.Add(1)
	if err := cr.each(c); err != nil {
		err = fmt.Errorf("LIKEWISE_SEED=%d: %v: %w", cr.seed, c, err)
		cr.failed.CompareAndSwap(nil, &err)
	}
	return nil
}

// crashRun plays a script on a new store, on the disk that wrap makes of the crasher's.
func crashRun(cr *crasher, s *script, wrap func(vfs.FS) vfs.FS) error {
	cr.mem = vfs.NewCrashableMem()
	fs := faultFS(cr.mem, cr.hook)
	if wrap != nil {
		fs = wrap(fs)
	}
	l, err := open(drillConfig(fs))
	if err != nil {
		return fmt.Errorf("open a new store: %w", err)
	}
	window := 1 + int(cr.seed%6)
	err = s.run(l, window, func() bool { return cr.failed.Load() != nil }, func(n int) { cr.acked.Store(int64(n)) })
	err = errors.Join(err, l.Close())
	if failed := cr.failed.Load(); failed != nil {
		return *failed
	}
	return err
}

// chance picks one operation in n.
func chance(seed uint64, n int) func(int64, errorfs.Op) bool {
	return func(at int64, _ errorfs.Op) bool { return newRand(seed-uint64(at)).IntN(n) == 0 }
}

// crashRuns makes runs, as many at a time as there are processors, until they crashed
// as often as wanted, and says on which kinds of files the crashes fell.
func crashRuns(t *testing.T, wanted int, each func(s *script, c crash) error, pick func(uint64) func(int64, errorfs.Op) bool) {
	t.Helper()
	seed := drillSeed(t)
	var total, run atomic.Int64
	var hit places
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for total.Load() < int64(wanted) && !t.Failed() {
				seed := seed + uint64(run.Add(1)-1)
				s := newScript(newRand(seed), 120)
				cr := &crasher{seed: seed, pick: pick(seed), each: func(c crash) error {
					hit.add(c.op)
					return each(s, c)
				}}
				if err := crashRun(cr, s, nil); err != nil {
					t.Error(err)
				}
				total.Add(cr.crashes.Load())
			}
		})
	}
	wg.Wait()
	kinds := hit.kinds()
	t.Logf("%d crashes in %d runs, by file: %v", total.Load(), run.Load(), kinds)
	if wanted >= 200 && (kinds[logSuffix] == 0 || kinds[markerName] == 0 || kinds[".sst"] == 0) {
		t.Error("some kind of file saw no crash")
	}
}

// places counts at which kinds of files crashes fell.
type places struct {
	mu   sync.Mutex
	hits map[string]int
}

func (p *places) add(op errorfs.Op) {
	kind := path.Ext(op.Path)
	switch base := path.Base(op.Path); {
	case strings.HasPrefix(base, manifestName), base == markerName:
		kind, _, _ = strings.Cut(base, "-")
	case kind != logSuffix && kind != ".sst":
		kind = "other"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hits == nil {
		p.hits = map[string]int{}
	}
	p.hits[kind]++
}

func (p *places) kinds() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.hits)
}

// recovered opens what a crash left and holds it against the script.
func recovered(s *script, c crash) error { return s.verify(drillConfig(c.disk), c.acked) }

// TestDrillCrashAnywhere is drill 1: crashes at random operations.
func TestDrillCrashAnywhere(t *testing.T) {
	crashRuns(t, heavy(200, 10_000), recovered, func(seed uint64) func(int64, errorfs.Op) bool {
		return chance(seed, 10)
	})
}

// TestDrillCrashEverywhere is drill 2: a crash at each of the first operations of one
// run, from the creation of the directory on.
func TestDrillCrashEverywhere(t *testing.T) {
	seed, n := drillSeed(t), int64(heavy(150, 2000))
	s := newScript(newRand(seed), int(n))
	var hit places
	cr := &crasher{
		seed: seed,
		pick: func(at int64, _ errorfs.Op) bool { return at <= n },
		each: func(c crash) error {
			hit.add(c.op)
			return recovered(s, c)
		},
	}
	if err := crashRun(cr, s, nil); err != nil {
		t.Fatal(err)
	}
	kinds := hit.kinds()
	t.Logf("crashes by file: %v", kinds)
	if cr.crashes.Load() != n {
		t.Errorf("%d crashes, want %d", cr.crashes.Load(), n)
	}
	for _, kind := range []string{logSuffix, "MANIFEST", markerName, "other"} {
		if kinds[kind] == 0 {
			t.Errorf("no crash at a %s file", kind)
		}
	}
}

// TestDrillCrashReordersNames crashes where the engine moves its markers, often, on a
// file system that keeps any of the new names and forgets any other.
func TestDrillCrashReordersNames(t *testing.T) {
	seed := drillSeed(t)
	dir := path.Join(drillConfig(nil).Dir, engineDir)
	s := newScript(newRand(seed), 20)
	cr := &crasher{seed: seed, pick: func(_ int64, op errorfs.Op) bool {
		return op.Path == dir && isSync(op) || strings.HasPrefix(path.Base(op.Path), "marker.")
	}}
	cr.each = func(c crash) error {
		for range heavy(5, 200) {
			c.keep = 50
			c.disk = cr.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.keep, RNG: c.rng})
			if err := recovered(s, c); err != nil {
				return err
			}
		}
		return nil
	}
	if err := crashRun(cr, s, nil); err != nil {
		t.Error(err)
	}
	if cr.crashes.Load() < 10 {
		t.Errorf("only %d operations on markers", cr.crashes.Load())
	}
}

// TestDrillCrashInRecovery is drill 3: the machine crashes again while it recovers, three
// times deep.
func TestDrillCrashInRecovery(t *testing.T) {
	var again atomic.Int64
	crashRuns(t, heavy(30, 3000), func(s *script, c crash) error {
		disk := c.disk
		for range 3 {
			target := 1 + c.rng.Int64N(60)
			next := &crasher{
				mem: disk, seed: c.rng.Uint64(),
				pick: func(at int64, _ errorfs.Op) bool { return at == target },
				each: func(c crash) error { disk = c.disk; return nil },
			}
			l, err := open(drillConfig(faultFS(disk, next.hook)))
			if err == nil {
				err = l.Close()
			}
			if err != nil {
				return fmt.Errorf("recovery: %w", err)
			}
			again.Add(next.crashes.Load())
		}
		return s.verify(drillConfig(disk), c.acked)
	}, func(seed uint64) func(int64, errorfs.Op) bool { return chance(seed, 30) })
	t.Logf("%d more crashes fell into recoveries", again.Load())
	if again.Load() < int64(heavy(30, 3000)) {
		t.Errorf("only %d crashes fell into recoveries", again.Load())
	}
}

// TestDrillCrashSeesLoss runs drill 1 on a disk that lies about its syncs: a drill that
// finds no loss there would find none anywhere.
func TestDrillCrashSeesLoss(t *testing.T) {
	seed := drillSeed(t)
	s := newScript(newRand(seed), 120)
	cr := &crasher{seed: seed, pick: chance(seed, 2)}
	cr.each = func(c crash) error {
		if c.acked < 10 {
			return nil
		}
		c.keep, c.disk = 0, cr.mem.CrashClone(vfs.CrashCloneCfg{})
		return recovered(s, c)
	}
	err := crashRun(cr, s, func(fs vfs.FS) vfs.FS { return lyingFS{fs} })
	if err == nil || !strings.Contains(err.Error(), "acknowledged likes are lost") {
		t.Errorf("got %v, want the loss", err)
	}
}

// TestDrillKillThenPowerLoss kills the process, whose writes the kernel still holds, and
// cuts the power when the next process has acknowledged what it found: no answer may
// rest on a log that nobody synced.
func TestDrillKillThenPowerLoss(t *testing.T) {
	var unsynced atomic.Int64
	seed := drillSeed(t)
	for i := range uint64(heavy(4, 200)) {
		seed := seed + i
		s := newScript(newRand(seed), 120)
		pick := chance(seed, 3)
		cr := &crasher{seed: seed, pick: func(at int64, op errorfs.Op) bool {
			return isSync(op) && path.Ext(op.Path) == logSuffix && pick(at, op)
		}}
		cr.each = func(c crash) error {
			disk := cr.mem.CrashClone(vfs.CrashCloneCfg{})
			held := cr.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: c.rng})
			grown, err := restoreUnsynced(disk, held)
			if err != nil {
				return err
			}
			if grown {
				unsynced.Add(1)
			}
			disk, acked, err := repeatAll(s, disk, c.acked)
			if err != nil {
				return err
			}
			return s.verify(drillConfig(disk), acked)
		}
		if err := crashRun(cr, s, nil); err != nil {
			t.Fatal(err)
		}
	}
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

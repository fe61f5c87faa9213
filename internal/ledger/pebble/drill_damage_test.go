package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"likewise/internal/like"
)

// image is the disk of a store that lost power after every call was acknowledged.
type image struct {
	disk   *vfs.MemFS
	script *script
	cfg    Config // of the store, without its file system
}

// newImage runs a script of n calls. Small memtables leave the likes in tables, big
// ones in the log.
func newImage(tb testing.TB, r *rand.Rand, n int, memtable uint64) image {
	tb.Helper()
	mem := vfs.NewCrashableMem()
	im := image{script: newScript(r, n), cfg: drillConfig(nil)}
	im.cfg.MemtableBytes = memtable
	l, err := open(im.on(mem))
	if err != nil {
		tb.Fatal(err)
	}
	if err := im.script.run(l, 1, func() bool { return false }, func(int) {}); err != nil {
		tb.Fatal(err)
	}
	im.disk = mem.CrashClone(vfs.CrashCloneCfg{})
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
	return im
}

// on returns the settings of the image's store on another disk.
func (im image) on(disk vfs.FS) Config {
	cfg := im.cfg
	cfg.FS = disk
	return cfg
}

func (im image) copy() *vfs.MemFS { return im.disk.CrashClone(vfs.CrashCloneCfg{}) }

// verify opens a damaged copy and requires every acknowledged call, or like.ErrCorrupt.
func (im image) verify(disk *vfs.MemFS) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return im.script.verify(im.on(disk), len(im.script.calls))
}

// files returns the paths in the store whose base name starts with or ends in what.
func (im image) files(tb testing.TB, what string) []string {
	tb.Helper()
	var found []string
	for _, dir := range []string{im.cfg.Dir, path.Join(im.cfg.Dir, engineDir)} {
		names, err := im.disk.List(dir)
		if err != nil {
			tb.Fatal(err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, what) || strings.HasSuffix(name, what) {
				found = append(found, path.Join(dir, name))
			}
		}
	}
	if len(found) == 0 {
		tb.Fatalf("the store has no %s file", what)
	}
	slices.Sort(found)
	return found
}

// newest returns the file with the largest number among them.
func (im image) newest(tb testing.TB, what string) string {
	tb.Helper()
	files := im.files(tb, what)
	return files[len(files)-1]
}

func readFile(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

func writeFile(fsys vfs.FS, name string, data []byte) error {
	f, err := fsys.Create(name, "drill")
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Clone(data)) // which may change what it is given
	return errors.Join(err, f.Sync(), f.Close())
}

// edit changes one file of a disk.
func edit(fsys vfs.FS, name string, change func(data []byte) []byte) error {
	data, err := readFile(fsys, name)
	if err != nil {
		return err
	}
	return writeFile(fsys, name, change(bytes.Clone(data)))
}

// TestDrillTornLog is drill 4: the newest log ends early, at any byte.
func TestDrillTornLog(t *testing.T) {
	seed := drillSeed(t)
	im := newImage(t, newRand(seed), 500, 1<<20)
	log := im.newest(t, ".log")
	data, err := readFile(im.disk, log)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) <= 32<<10 {
		t.Fatalf("the log has %d bytes; the drill wants more than one block", len(data))
	}
	step := heavy(len(data)/60, 7)
	refused := counter{}
	eachPoint(t, len(data)/step, func(i int) error {
		cut := len(data) - 1 - i*step
		disk := im.copy()
		if err := writeFile(disk, log, data[:cut]); err != nil {
			return err
		}
		err := im.verify(disk)
		if err == nil {
			return nil
		}
		refused.add("torn")
		if !errors.Is(err, like.ErrCorrupt) || !strings.Contains(err.Error(), "was acknowledged") {
			return fmt.Errorf("cut at %d of %d: %w", cut, len(data), err)
		}
		if i%8 != 0 {
			return nil
		}
		cfg := im.on(disk)
		cfg.AcceptRollback = true
		if err := im.script.verify(cfg, 0); err != nil {
			return fmt.Errorf("cut at %d of %d, loss accepted: %w", cut, len(data), err)
		}
		if err := im.script.verify(im.on(disk), 0); err != nil {
			return fmt.Errorf("cut at %d of %d, opened after the loss was accepted: %w", cut, len(data), err)
		}
		return nil
	})
	t.Logf("%d cuts, %v refused", len(data)/step, refused.n)
	if refused.n["torn"] == 0 {
		t.Error("no cut took anything away")
	}
}

// TestDrillTornLogNeedsMarker is the mutant of drill 4: without the marker a torn log
// is a silent loss, and the drill sees it.
func TestDrillTornLogNeedsMarker(t *testing.T) {
	im := newImage(t, newRand(drillSeed(t)), 50, 1<<20)
	disk := im.copy()
	err := errors.Join(
		edit(disk, im.newest(t, ".log"), func(data []byte) []byte { return data[:len(data)*2/3] }),
		createMarker(disk, im.cfg.Dir, 0),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := im.verify(disk); err == nil || errors.Is(err, like.ErrCorrupt) {
		t.Errorf("got %v; want the drill to report the loss that the store cannot see", err)
	}
}

// counter counts what became of the points of a drill.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[what]++
}

// TestDrillFlippedBit is drill 5: a flipped bit in any file of the store is a loss that
// is refused or reported, or no loss at all; never a wrong answer.
func TestDrillFlippedBit(t *testing.T) {
	seed := drillSeed(t)
	inLog := newImage(t, newRand(seed), 500, 1<<20)
	inTables := newImage(t, newRand(seed), 300, 8<<10)
	flushed := newImage(t, newRand(seed), 110, 8<<10) // and nothing compacted yet
	for _, tt := range []struct {
		name      string
		image     image
		file      string
		from, to  float64 // which part of the file
		harmless  bool    // no flip can do harm
		rare      bool    // few flips can
		fullCount int
	}{
		{"log middle", inLog, inLog.newest(t, ".log"), 0, 0.8, false, false, 1000},
		{"log end", inLog, inLog.newest(t, ".log"), 0.95, 1, false, false, 1000},
		{"manifest", flushed, flushed.newest(t, manifestName), 0, 1, false, false, 1000},
		{"options", inTables, inTables.newest(t, "OPTIONS"), 0, 1, false, true, 1000},
		{"table", inTables, "", 0, 1, false, false, 2000},
		{"marker", inLog, inLog.newest(t, markerName), 0, 1, true, true, 300},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var became counter
			n := heavy(40, tt.fullCount)
			eachPoint(t, n, func(i int) error {
				seed := seed + uint64(i)
				r := newRand(seed)
				file := tt.file
				if file == "" {
					tables := tt.image.files(t, ".sst")
					file = tables[r.IntN(len(tables))]
				}
				disk := tt.image.copy()
				bit, err := flip(r, disk, file, tt.from, tt.to)
				if err != nil {
					return err
				}
				switch err := tt.image.verify(disk); {
				case err == nil:
					became.add("all right")
				case errors.Is(err, like.ErrCorrupt) && !tt.harmless:
					became.add("refused")
				default:
					return fmt.Errorf("LIKEWISE_SEED=%d: bit %d of %s: %w", seed, bit, file, err)
				}
				return nil
			})
			t.Logf("%d flips: %v", n, became.n)
			if became.n["refused"] == 0 && !tt.rare {
				t.Error("no flip was noticed")
			}
		})
	}
}

// flip flips one bit in a part of a file.
func flip(r *rand.Rand, disk vfs.FS, file string, from, to float64) (bit int, err error) {
	err = edit(disk, file, func(data []byte) []byte {
		if len(data) == 0 {
			return data // a table that was just being made
		}
		first, end := int(from*float64(len(data))), int(to*float64(len(data)))
		bit = first*8 + r.IntN((end-first)*8)
		data[bit/8] ^= 1 << (bit % 8)
		return data
	})
	return bit, err
}

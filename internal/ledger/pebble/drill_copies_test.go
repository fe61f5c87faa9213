package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"likewise/internal/like"
)

// TestDrillSecondOwner is drill 11: a store has one owner.
func TestDrillSecondOwner(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			cfg := drillConfig(fs)
			if name == "disk" {
				cfg.Dir = t.TempDir()
			}
			l, err := open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			s := newScript(newRand(drillSeed(t)), 40)
			half := *s
			half.calls = s.calls[:20]
			never := func() bool { return false }
			if err := half.run(l, 1, never, func(int) {}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, err := open(cfg)
				if !errors.Is(err, like.ErrUnavailable) || !strings.Contains(err.Error(), "in use") {
					t.Errorf("a second owner got %v, want unavailable because it is in use", err)
				}
			}
			half.calls = s.calls[20:]
			if err := half.run(l, 1, never, func(int) {}); err != nil {
				t.Errorf("the first owner: %v", err)
			}
			if err := checkViews(l, s.states[40].facts); err != nil {
				t.Errorf("the first owner: %v", err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := s.verify(cfg, 40); err != nil {
				t.Errorf("the next owner: %v", err)
			}
		})
	}
}

// contents returns every file below dir.
func contents(tb testing.TB, fsys vfs.FS, dir string) map[string]string {
	tb.Helper()
	files := map[string]string{}
	names, err := fsys.List(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range names {
		full := path.Join(dir, name)
		if info, err := fsys.Stat(full); err != nil {
			tb.Fatal(err)
		} else if info.IsDir() {
			maps.Copy(files, contents(tb, fsys, full))
			continue
		}
		data, err := readFile(fsys, full)
		if err != nil {
			tb.Fatal(err)
		}
		files[full] = string(data)
	}
	return files
}

// TestDrillNewerFormat is drill 12: a store of a later version is refused, and no byte
// of it is touched.
func TestDrillNewerFormat(t *testing.T) {
	im := newImage(t, newRand(drillSeed(t)), 60, 8<<10)
	for _, tt := range []struct {
		name  string
		kind  error
		text  string
		newer func(disk vfs.FS) error
	}{
		{"ours", like.ErrInvalid, "format 2", func(disk vfs.FS) error {
			return edit(disk, path.Join(im.cfg.Dir, markerName), func(b []byte) []byte {
				for slot := range 2 {
					part := b[slot*markerSlot:]
					part[3] = storeFormat + 1
					binary.BigEndian.PutUint32(part[32:], crc32.Checksum(part[:32], castagnoli))
				}
				return b
			})
		}},
		{"the engine's", like.ErrCorrupt, "format major version", func(disk vfs.FS) error {
			return writeFile(disk, path.Join(im.cfg.Dir, engineDir, "marker.format-version.000999.999"), nil)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disk := im.copy()
			if err := tt.newer(disk); err != nil {
				t.Fatal(err)
			}
			before := contents(t, disk, im.cfg.Dir)
			for _, accept := range []bool{false, true} {
				cfg := im.on(disk)
				cfg.AcceptRollback = accept
				l, err := open(cfg)
				if err == nil {
					t.Fatal(errors.Join(errors.New("opened"), l.Close()))
				}
				if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("accept %v: %v, want %v and %q", accept, err, tt.kind, tt.text)
				}
			}
			if !maps.Equal(before, contents(t, disk, im.cfg.Dir)) {
				t.Error("refusing the store changed its files")
			}
		})
	}
}

// TestDrillBackup is drill 13: a backup under load is a whole store at one point that
// holds all that was acknowledged before.
func TestDrillBackup(t *testing.T) {
	mem := vfs.NewCrashableMem()
	l, err := open(drillConfig(mem))
	if err != nil {
		t.Fatal(err)
	}
	s := newScript(newRand(drillSeed(t)), 400)
	backups := map[string]int{} // calls acknowledged before each
	err = s.run(l, 4, func() bool { return false }, func(acked int) {
		if acked%100 != 50 {
			return
		}
		dir := fmt.Sprintf("backups/%d", acked)
		if err := l.Backup(t.Context(), dir); err != nil {
			t.Errorf("backup at %d: %v", acked, err)
		}
		backups[dir] = acked
	})
	if err != nil {
		t.Fatal(err)
	}
	disk := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if len(backups) != 4 {
		t.Errorf("%d backups, want 4", len(backups))
	}
	for dir, acked := range backups {
		cfg := drillConfig(disk.CrashClone(vfs.CrashCloneCfg{}))
		cfg.Dir = dir
		if err := s.verify(cfg, acked); err != nil {
			t.Errorf("restored %s: %v", dir, err)
		}
		// The older engine under the store's own, newer marker.
		old := disk.CrashClone(vfs.CrashCloneCfg{})
		if err := replaceEngine(old, drillConfig(nil).Dir, dir); err != nil {
			t.Fatal(err)
		}
		err := s.verify(drillConfig(old), len(s.calls))
		if !errors.Is(err, like.ErrCorrupt) || !strings.Contains(err.Error(), "older copy") {
			t.Errorf("%s under a newer marker: %v, want corrupt and why", dir, err)
		}
	}
}

func replaceEngine(fsys vfs.FS, dir, from string) error {
	dir, from = path.Join(dir, engineDir), path.Join(from, engineDir)
	if err := errors.Join(fsys.RemoveAll(dir), fsys.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	names, err := fsys.List(from)
	for _, name := range names {
		err = errors.Join(err, vfs.Copy(fsys, path.Join(from, name), path.Join(dir, name)))
	}
	return err
}

// TestDrillBackupInterrupted crashes during a backup, at every operation: the half copy
// is refused, and a backup that failed leaves its place free for the next.
func TestDrillBackupInterrupted(t *testing.T) {
	r := newRand(drillSeed(t))
	im := newImage(t, r, 120, 8<<10)
	refused, whole, failed := 0, 0, 0
	for at := int64(1); ; at++ {
		left, err := im.interruptBackup(at, at%2 == 1)
		if err != nil {
			failed++
		}
		if left == nil {
			break // the backup has no operation like that
		}
		cfg := im.on(left.disk)
		cfg.Dir = "backup"
		if names, err := left.disk.List(path.Join(cfg.Dir, engineDir)); err != nil || len(names) == 0 {
			continue // nothing was copied yet
		}
		switch err := im.script.verify(cfg, len(im.script.calls)); {
		case err == nil:
			whole++
		case errors.Is(err, like.ErrCorrupt):
			refused++
		default:
			t.Errorf("%v: %v", left, err)
		}
	}
	t.Logf("%d backups were refused, %d were whole, %d failed", refused, whole, failed)
	if refused == 0 || failed == 0 {
		t.Error("want some refused and some failed")
	}
}

// interruptBackup crashes in front of one operation of a backup, and makes it fail if
// asked to. It returns what the crash left, and the backup's error; then another
// backup to the same place succeeded.
func (im image) interruptBackup(at int64, fail bool) (left *crash, failed error) {
	disk := im.copy()
	cr := &crasher{
		mem:  disk,
		pick: func(n int64, _ errorfs.Op) bool { return n == at },
		each: func(c crash) error { left = &c; return nil },
	}
	var armed atomic.Bool
	l, err := open(im.on(faultFS(disk, func(op errorfs.Op) error {
		if !armed.Load() {
			return nil
		}
		before := cr.crashes.Load()
		err := cr.hook(op)
		if fail && cr.crashes.Load() > before && strings.HasPrefix(op.Path, "backup") {
			return errCrashed
		}
		return err
	})))
	if err != nil {
		return nil, err
	}
	armed.Store(true)
	if failed = l.Backup(context.Background(), "backup"); failed != nil {
		if err := l.Backup(context.Background(), "backup"); err != nil {
			panic(fmt.Sprintf("the backup after a failed one: %v", err))
		}
	}
	if err := l.Close(); err != nil {
		panic(fmt.Sprintf("the store after a backup: %v", err))
	}
	return left, failed
}

// TestDrillMarkerLost opens stores whose marker is gone or unreadable: what was
// acknowledged is unknown, which the operator must accept.
func TestDrillMarkerLost(t *testing.T) {
	im := newImage(t, newRand(drillSeed(t)), 60, 8<<10)
	marker := path.Join(im.cfg.Dir, markerName)
	for name, harm := range map[string]func(disk vfs.FS) error{
		"removed": func(disk vfs.FS) error { return disk.Remove(marker) },
		"cut":     func(disk vfs.FS) error { return writeFile(disk, marker, make([]byte, markerSlot)) },
		"zeroed":  func(disk vfs.FS) error { return writeFile(disk, marker, make([]byte, 2*markerSlot)) },
		"noise": func(disk vfs.FS) error {
			return writeFile(disk, marker, bytes.Repeat([]byte("noise"), markerSlot))
		},
		"engine removed": func(disk vfs.FS) error {
			return disk.RemoveAll(path.Join(im.cfg.Dir, engineDir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := im.copy()
			if err := harm(disk); err != nil {
				t.Fatal(err)
			}
			before := contents(t, disk, im.cfg.Dir)
			if err := im.verify(disk); !errors.Is(err, like.ErrCorrupt) {
				t.Errorf("got %v, want corrupt", err)
			}
			for name := range before {
				if _, err := disk.Stat(name); err != nil {
					t.Errorf("refusing the store removed %s", name)
				}
			}
			cfg := im.on(disk)
			cfg.AcceptRollback = true
			if err := im.script.verify(cfg, 0); err != nil {
				t.Errorf("accepted: %v", err)
			}
			if err := im.script.verify(im.on(disk), 0); err != nil {
				t.Errorf("opened after it was accepted: %v", err)
			}
		})
	}
}

package pebble

import (
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var errCrashed = errors.New("the machine has crashed")

// crashFS is a file system in memory whose machine can crash between two syncs:
// what was synced before is in the copy that crash returns, and the marker is not
// synced after it, so nothing can be acknowledged that the copy lacks. The engine's
// files go on as before: when one of them fails, the engine ends the process.
type crashFS struct {
	*vfs.MemFS
	mu   sync.RWMutex
	dead bool
}

func newCrashFS() *crashFS { return &crashFS{MemFS: vfs.NewCrashableMem()} }

// crash ends the machine and returns its disk, without anything unsynced.
func (c *crashFS) crash() *crashFS {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	return &crashFS{MemFS: c.CrashClone(vfs.CrashCloneCfg{})}
}

func (c *crashFS) crashed() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.dead
}

func (c *crashFS) sync(do func() error) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.dead {
		return errCrashed
	}
	return do()
}

func (c *crashFS) OpenReadWrite(name string, cat vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.MemFS.OpenReadWrite(name, cat, opts...)
	if err != nil || c.PathBase(name) != markerName {
		return f, err
	}
	return &crashFile{File: f, fs: c}, nil
}

func (c *crashFS) ReuseForWrite(old, name string, cat vfs.DiskWriteCategory) (vfs.File, error) {
	return recycleFS{c.MemFS}.ReuseForWrite(old, name, cat)
}

// crashFile is the marker.
type crashFile struct {
	vfs.File
	fs *crashFS
}

func (f *crashFile) Sync() error     { return f.fs.sync(f.File.Sync) }
func (f *crashFile) SyncData() error { return f.fs.sync(f.File.SyncData) }
func (f *crashFile) SyncTo(n int64) (full bool, err error) {
	err = f.fs.sync(func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, err
}

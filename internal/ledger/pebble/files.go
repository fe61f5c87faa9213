package pebble

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"likewise/internal/like"
)

// orderedFS keeps the engine's marker files in order. A marker names the current
// manifest or format by its own name, and the engine creates the new one, removes
// the old one and syncs the directory once for both and for the manifest: a power
// loss on a file system that reorders names could leave a marker without its
// manifest, or no marker at all (cockroachdb/pebble#5825).
type orderedFS struct{ vfs.FS }

// Create makes what a marker names durable before it, and the marker before the
// engine goes on.
func (o orderedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !strings.HasPrefix(o.PathBase(name), "marker.") {
		return o.FS.Create(name, category)
	}
	dir := o.PathDir(name)
	if err := syncDir(o.FS, dir); err != nil {
		return nil, err
	}
	f, err := o.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	if err := syncDir(o.FS, dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// makeDir creates dir and what is missing above it, and makes every name on the
// way durable: a directory that a power loss takes away takes the store along. A
// parent that may not be read was not created here.
func makeDir(fsys vfs.FS, dir string) error {
	err := fsys.MkdirAll(dir, 0o700)
	for parent := ""; err == nil && parent != dir; {
		parent, dir = dir, fsys.PathDir(dir)
		if err = syncDir(fsys, dir); errors.Is(err, fs.ErrPermission) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("%w: create the directory: %w", like.ErrUnavailable, err)
	}
	return nil
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

package pebble

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"likewise/internal/like"
)

// advice ends the message of a store that may have lost acknowledged likes.
const advice = ": acknowledged likes may be missing (a damaged file, or files of an older copy). " +
	"Restore the newest copy, or accept the loss explicitly"

const (
	manifestName = "MANIFEST-"
	logSuffix    = ".log"
)

// engineFS is the file system as the engine sees it.
//
// It keeps the engine's marker files in order. A marker names the current manifest
// or format by its own name, and the engine creates the new one, removes the old
// one and syncs the directory once for both and for the manifest: a power loss on a
// file system that reorders names could leave a marker without its manifest, or no
// marker at all (cockroachdb/pebble#5825).
//
// It reports how much of a manifest is durable, after each sync. And it reports that
// a log cannot be created, because the engine then panics with a lock in a state that
// lets nobody recover or read why.
type engineFS struct {
	vfs.FS
	dir    string // the engine's
	synced func(manifestPrefix)
	noLog  func(error)
}

// Create implements [vfs.FS].
func (e engineFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	base, own := e.PathBase(name), e.PathDir(name) == e.dir // a backup is written elsewhere
	number, manifest := manifestNumber(base)
	if strings.HasPrefix(base, "marker.") {
		return e.createMarker(name, category)
	}
	f, err := e.FS.Create(name, category)
	switch {
	case own && strings.HasSuffix(base, logSuffix):
		return f, e.checkLog(err)
	case own && manifest && err == nil:
		return &manifestFile{File: f, synced: e.synced, prefix: manifestPrefix{number: number}}, nil
	}
	return f, err
}

// createMarker makes durable what the marker names before it creates the marker, and
// the marker before the engine goes on.
func (e engineFS) createMarker(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	dir := e.PathDir(name)
	if err := syncDir(e.FS, dir); err != nil {
		return nil, err
	}
	f, err := e.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	if err := syncDir(e.FS, dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReuseForWrite implements [vfs.FS]; the engine recycles its logs with it.
func (e engineFS) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := e.FS.ReuseForWrite(old, name, category)
	return f, e.checkLog(err)
}

func (e engineFS) checkLog(err error) error {
	if err != nil {
		e.noLog(err)
	}
	return err
}

// manifestFile follows what the engine writes to a manifest, one call at a time.
type manifestFile struct {
	vfs.File
	prefix manifestPrefix
	synced func(manifestPrefix)
}

func (f *manifestFile) Write(b []byte) (int, error) {
	// The file may change b. A write that fails ends the engine, so n does not matter.
	f.prefix.size += uint64(len(b))
	f.prefix.sum = crc32.Update(f.prefix.sum, castagnoli, b)
	return f.File.Write(b)
}

func (f *manifestFile) Sync() error {
	err := f.File.Sync()
	if err == nil {
		f.synced(f.prefix)
	}
	return err
}

func manifestNumber(base string) (uint64, bool) {
	digits, ok := strings.CutPrefix(base, manifestName)
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, ok && err == nil
}

// checkManifest compares a manifest with what was durable of it. Of another one
// nothing is known: the marker is written a moment after the engine's.
func checkManifest(fsys vfs.FS, path string, known manifestPrefix) error {
	if number, _ := manifestNumber(fsys.PathBase(path)); number != known.number || known.size == 0 {
		return nil
	}
	f, err := fsys.Open(path)
	if err != nil {
		return openError(err)
	}
	sum := crc32.New(castagnoli)
	n, err := io.CopyN(sum, f, int64(known.size))
	if err := errors.Join(err, f.Close()); err != nil && !errors.Is(err, io.EOF) {
		return openError(err)
	}
	if uint64(n) < known.size || sum.Sum32() != known.sum {
		return fmt.Errorf("%w: the first %d bytes of %s are not what was written%s", like.ErrCorrupt, known.size, path, advice)
	}
	return nil
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

// Package durable writes files that are there, whole, after a power loss. It knows
// files and directories of the operating system only; a store that has its own
// view of the disk keeps to that.
package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// WriteFile puts what write writes, under the name path and for its owner only, in
// the place of what is there: durably and completely, or not at all.
func WriteFile(path string, write func(w io.Writer) error) error {
	return put(path, write, os.Rename)
}

// CreateFile is [WriteFile] for a name that is not taken yet. Else it is an error
// that wraps [io/fs.ErrExist], and what is there stays; of several that create one
// name at a time, one succeeds.
func CreateFile(path string, write func(w io.Writer) error) error {
	return put(path, write, func(tmp, path string) error { return errors.Join(os.Link(tmp, path), os.Remove(tmp)) })
}

// put writes a temporary file beside path and lets place give it its name.
func put(path string, write func(w io.Writer) error, place func(tmp, path string) error) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	if err := errors.Join(write(tmp), tmp.Sync(), tmp.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	if err := place(tmp.Name(), path); err != nil {
		_ = os.Remove(tmp.Name()) // place may have done so
		return err
	}
	return SyncDir(dir)
}

// SyncDir makes the names in a directory durable. Where the system cannot do that
// (Windows) it does nothing.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

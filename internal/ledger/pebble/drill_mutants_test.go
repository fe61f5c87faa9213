package pebble

import "github.com/cockroachdb/pebble/v2/vfs"

// lyingFS is a disk that reports success for a sync and does nothing.
type lyingFS struct{ vfs.FS }

type lyingFile struct{ vfs.File }

func (lyingFile) Sync() error                { return nil }
func (lyingFile) SyncData() error            { return nil }
func (lyingFile) SyncTo(int64) (bool, error) { return true, nil }

func lying(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return lyingFile{f}, nil
}

func (l lyingFS) Create(name string, cat vfs.DiskWriteCategory) (vfs.File, error) {
	return lying(l.FS.Create(name, cat))
}

func (l lyingFS) OpenReadWrite(name string, cat vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return lying(l.FS.OpenReadWrite(name, cat, opts...))
}

func (l lyingFS) OpenDir(name string) (vfs.File, error) { return lying(l.FS.OpenDir(name)) }

func (l lyingFS) ReuseForWrite(old, name string, cat vfs.DiskWriteCategory) (vfs.File, error) {
	return lying(l.FS.ReuseForWrite(old, name, cat))
}

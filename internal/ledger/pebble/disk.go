package pebble

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"likewise/internal/like"
)

// diskGuard refuses commands before the disk is full: a store that runs out of
// space in its log can only stop.
type diskGuard struct {
	fs      vfs.FS
	dir     string
	reserve uint64 // 0 chooses by the size of the disk
	floor   uint64 // what flushing every memtable can need
}

func newDiskGuard(cfg Config) *diskGuard {
	return &diskGuard{
		fs:      cfg.FS,
		dir:     cfg.Dir,
		reserve: cfg.DiskReserveBytes,
		floor:   cfg.MemtableBytes * 3 / 2,
	}
}

// check returns like.ErrUnavailable while less than the reserve is free. It
// costs one system call. A file system that cannot tell is not guarded.
func (d *diskGuard) check() error {
	usage, err := d.fs.GetDiskUsage(d.dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: free disk space is unknown: %w", like.ErrUnavailable, err)
	}
	reserve := d.reserve
	if reserve == 0 {
		reserve = max(min(usage.TotalBytes/20, 1<<30), d.floor)
	}
	if usage.AvailBytes < reserve {
		return fmt.Errorf("%w: disk is nearly full: %d MiB free, %d MiB are kept in reserve",
			like.ErrUnavailable, usage.AvailBytes>>20, reserve>>20)
	}
	return nil
}

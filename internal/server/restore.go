package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"likewise/internal/config"
	"likewise/internal/durable"
	"likewise/internal/ledger/pebble"
	"likewise/internal/like"
)

// Restore copies a backup into the data directory, where there must be no store
// yet, and proves that it opens before it gets its place. Keys of the data
// directory stay as they are: a backup holds none. A restore that was cut off is
// simply started again.
func Restore(ctx context.Context, cfg config.Config, o Options, backup string) error {
	if _, err := os.Stat(filepath.Join(backup, "db")); err != nil {
		return fmt.Errorf("%w: %s is not a directory that `likewise backup` wrote: %w", like.ErrInvalid, backup, err)
	}
	target := ledgerDir(cfg)
	if entries, err := os.ReadDir(target); err == nil && len(entries) > 0 {
		return fmt.Errorf("%w: %s holds a store already; move it away, or restore into another --data-dir", like.ErrInvalid, target)
	}
	partial := target + ".restoring"
	if err := os.RemoveAll(partial); err != nil {
		return fmt.Errorf("remove an earlier attempt: %w", err)
	}
	if err := copyTree(ctx, backup, partial); err != nil {
		return fmt.Errorf("copy the backup: %w", err)
	}
	to := pebbleConfig(cfg)
	to.Dir, to.Logger = partial, o.Log.With("component", "ledger")
	l, err := pebble.Open(to)
	if err != nil {
		return fmt.Errorf("the backup does not open: %w", err)
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("close the restored store: %w", err)
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(partial, target); err != nil {
		return err
	}
	return durable.SyncDir(cfg.DataDir)
}

// copyTree copies the regular files and directories of from, durably.
func copyTree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if entry.IsDir() {
			return errors.Join(os.MkdirAll(target, 0o700), durable.SyncDir(filepath.Dir(target)))
		}
		return errors.Join(copyFile(path, target), durable.SyncDir(filepath.Dir(target)))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

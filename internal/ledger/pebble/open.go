package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"

	pdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"likewise/internal/like"
)

const (
	// engineFormat is set explicitly: the default is the oldest one, whose log
	// cannot tell a flipped bit in its middle from its end.
	engineFormat = pdb.FormatValueSeparation
	// storeFormat is the version of our keys and values.
	storeFormat = 1
	// stampGap lies between the last durable stamp and the first one after a
	// start, so that a version which a reader saw but a power loss took back is
	// never given to another count.
	stampGap = like.Stamp(1_000_000)

	engineDir = "db"
	memtables = 4 // at most this many exist, the one being written included
)

// Open opens the store in cfg.Dir, or creates it. Errors: like.ErrInvalid for a
// setting, like.ErrUnavailable when another process has it open or the disk
// refuses, like.ErrCorrupt when the files contradict themselves or acknowledged
// commands are missing (see [Config.AcceptRollback]).
func Open(cfg Config) (*Ledger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := &Ledger{cfg: cfg, commits: make(chan *commit, commitDepth)}
	l.calls.init()
	l.queue = newQueue(cfg.QueueLength, cfg.QueueAge)
	l.disk = newDiskGuard(cfg)
	if err := l.openStore(); err != nil {
		return nil, err
	}
	seq, last, err := l.recover()
	if err != nil {
		return nil, errors.Join(err, l.db.Close(), l.lock.Close())
	}
	l.start(last, seq)
	return l, nil
}

// openStore locks the directory and opens the engine in it. A new store is closed
// and opened once more, because only the log of the second opening is written in
// the format that was set.
func (l *Ledger) openStore() (err error) {
	dir := l.cfg.FS.PathJoin(l.cfg.Dir, engineDir)
	if err := makeDir(l.cfg.FS, l.cfg.Dir, dir); err != nil {
		return err
	}
	if l.lock, err = pdb.LockDirectory(dir, l.cfg.FS); err != nil {
		return fmt.Errorf("%w: %s is in use by another process, or cannot be locked: %w",
			like.ErrUnavailable, l.cfg.Dir, err)
	}
	desc, err := pdb.Peek(dir, l.cfg.FS)
	if err == nil && !desc.Exists {
		err = l.createEngine(dir)
	}
	if err == nil {
		l.db, err = pdb.Open(dir, l.options())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", dir, openError(err)), l.lock.Close())
	}
	return nil
}

func (l *Ledger) createEngine(dir string) error {
	db, err := pdb.Open(dir, l.options())
	if err != nil {
		return err
	}
	return errors.Join(db.Set(metaFormat, []byte{storeFormat}, pdb.Sync), db.Close())
}

// makeDir creates the ledger's directory and the engine's inside it, and makes
// both names durable.
func makeDir(fsys vfs.FS, dir, inner string) error {
	err := fsys.MkdirAll(inner, 0o700)
	if err == nil {
		err = syncDir(fsys, dir)
	}
	if err == nil {
		err = syncDir(fsys, fsys.PathDir(dir))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", like.ErrUnavailable, err)
	}
	return nil
}

// openError gives the engine's reason for not opening a kind. A log or manifest
// that cannot be replayed is corrupt even where the engine does not mark it so.
func openError(err error) error {
	if errors.Is(err, record.ErrInvalidChunk) {
		return fmt.Errorf("%w: %w", like.ErrCorrupt, err)
	}
	return storeError(err)
}

func (l *Ledger) options() *pdb.Options {
	o := &pdb.Options{
		FS:                 l.cfg.FS,
		Lock:               l.lock,
		FormatMajorVersion: engineFormat,
		// The engine counts memtables against the cache, so they come on top.
		CacheSize:                   l.cfg.CacheBytes + memtables*int64(l.cfg.MemtableBytes),
		MemTableSize:                l.cfg.MemtableBytes,
		MemTableStopWritesThreshold: memtables,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       64,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                1000,
		Logger:                      engineLogger{log: l.cfg.Logger, fail: l.fail},
	}
	// Old likes are the cold storage: they are compressed well where they settle,
	// and what is still being rewritten is not compressed at all.
	o.ApplyCompressionSettings(func() pdb.DBCompressionSettings {
		c := pdb.DBCompressionNone
		c.Levels[len(c.Levels)-1] = sstable.ZstdCompression
		return c
	})
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].BlockSize = 16 << 10
	}
	return o
}

// recover checks that the store is ours and holds what was acknowledged, and
// returns the last sequence and a stamp above every one given out.
func (l *Ledger) recover() (seq uint64, last like.Stamp, err error) {
	format, err := getCopy(l.db, metaFormat)
	if err != nil {
		return 0, 0, err
	}
	if format != nil && (len(format) != 1 || format[0] != storeFormat) {
		return 0, 0, fmt.Errorf("%w: %s has store format %v; this program reads format %d only",
			like.ErrInvalid, l.cfg.Dir, format, storeFormat)
	}
	value, err := getCopy(l.db, metaSequence)
	if err != nil {
		return 0, 0, err
	}
	if value != nil {
		if seq, last, err = parseSequence(value); err != nil {
			return 0, 0, err
		}
		last += stampGap
	}
	m, acked, err := openMarker(l.cfg.FS, l.cfg.Dir)
	if err != nil {
		return 0, 0, err
	}
	l.marker = m
	if err := l.checkRollback(seq, acked); err != nil {
		return 0, 0, errors.Join(err, m.close())
	}
	return seq, last, nil
}

// checkRollback refuses a store that ends before the last acknowledged batch.
func (l *Ledger) checkRollback(seq, acked uint64) error {
	if seq >= acked {
		return nil
	}
	if !l.cfg.AcceptRollback {
		return fmt.Errorf("%w: %s ends at batch %d, but batch %d was acknowledged: acknowledged likes are "+
			"missing (a damaged log, or files of an older copy). Restore the newest copy, or accept the loss explicitly",
			like.ErrCorrupt, l.cfg.Dir, seq, acked)
	}
	l.cfg.Logger.Warn("accepted a store that lost acknowledged batches", "ends_at", seq, "acknowledged", acked)
	return l.marker.write(seq)
}

func sequenceValue(dst []byte, seq uint64, last like.Stamp) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, seq), uint64(last))
}

func parseSequence(value []byte) (uint64, like.Stamp, error) {
	seq, last, err := parseTotal(value)
	return uint64(seq), like.Stamp(last), err
}

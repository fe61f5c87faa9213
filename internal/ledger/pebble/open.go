package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	pdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"

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
	return open(cfg)
}

// open is Open without the checks: the drills use memtables that are too small
// for production.
func open(cfg Config) (*Ledger, error) {
	l := &Ledger{
		cfg:           cfg,
		commits:       make(chan *commit, commitDepth),
		manifestMoved: make(chan struct{}, 1),
		audits:        newTurn(),
		backups:       newTurn(),
	}
	l.manifest.Store(&manifestPrefix{})
	l.calls.init()
	l.queue = newQueue(cfg.QueueLength, cfg.QueueAge)
	l.disk = newDiskGuard(cfg)
	if err := l.openStore(); err != nil {
		return nil, err
	}
	seq, last, err := l.recover()
	if err != nil {
		return nil, errors.Join(err, l.db.Close(), l.marker.close(), l.lock.Close())
	}
	l.start(last, seq)
	return l, nil
}

// openStore locks the directory and opens what is in it.
func (l *Ledger) openStore() (err error) {
	fsys, dir := l.cfg.FS, l.engineDir()
	if err := makeDir(fsys, dir); err != nil {
		return err
	}
	if l.lock, err = pdb.LockDirectory(dir, fsys); err != nil {
		return fmt.Errorf("%w: %s is in use by another process, or cannot be locked: %w",
			like.ErrUnavailable, l.cfg.Dir, err)
	}
	desc, err := pdb.Peek(dir, fsys)
	if err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", dir, openError(err)), l.lock.Close())
	}
	files, err := fsys.List(dir)
	if err != nil {
		return errors.Join(fmt.Errorf("list %s: %w", dir, openError(err)), l.lock.Close())
	}
	if err := l.openMarker(desc, len(files) <= 1); err != nil { // one file is the lock
		return errors.Join(err, l.lock.Close())
	}
	if err := l.openEngine(dir, desc); err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", dir, openError(err)), l.marker.close(), l.lock.Close())
	}
	return nil
}

func (l *Ledger) engineDir() string { return l.cfg.FS.PathJoin(l.cfg.Dir, engineDir) }

// openMarker opens the marker, or creates it where there is no file of the engine
// yet. It refuses a directory in which marker and engine do not belong together.
func (l *Ledger) openMarker(desc *pdb.DBDesc, empty bool) error {
	m, err := openMarker(l.cfg.FS, l.cfg.Dir)
	if m == nil {
		return err
	}
	l.marker = m
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing && empty:
		err = m.create(l.cfg.FS, l.cfg.Dir, 0)
	case missing:
		err = fmt.Errorf("%w: %s does not say what was acknowledged: it is an unfinished backup, or only a part "+
			"of a store", like.ErrCorrupt, l.cfg.Dir)
	case err == nil && !desc.Exists:
		err = l.checkRollback(0)
	case err == nil:
		err = checkManifest(l.cfg.FS, desc.ManifestFilename, m.known)
	}
	if errors.Is(err, like.ErrCorrupt) && l.cfg.AcceptRollback {
		l.cfg.Logger.Warn("accepted a store that may have lost acknowledged batches", "error", err)
		err = m.create(l.cfg.FS, l.cfg.Dir, 0)
	}
	if err != nil {
		return errors.Join(err, m.close())
	}
	return nil
}

// openEngine opens the engine. A store that was not in our format yet is closed and
// opened once more, because only the log of the second opening is written in it.
func (l *Ledger) openEngine(dir string, desc *pdb.DBDesc) (err error) {
	if !desc.Exists || desc.FormatMajorVersion < engineFormat {
		db, err := pdb.Open(dir, l.options())
		if err != nil {
			return err
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
	l.db, err = pdb.Open(dir, l.options())
	return err
}

// openError gives the engine's reason for not opening a kind: what does not come from
// the operating system is what the files say, and that is corrupt even where the
// engine does not mark it so.
func openError(err error) error {
	_, fromSystem := errors.AsType[syscall.Errno](err)
	if fromSystem && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", like.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", like.ErrCorrupt, err)
}

func (l *Ledger) options() *pdb.Options {
	o := &pdb.Options{
		FS:                 engineFS{FS: l.cfg.FS, dir: l.engineDir(), synced: l.noteManifest, noLog: l.failLog},
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
		EventListener:               &pdb.EventListener{DataCorruption: l.reportDamage},
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

// reportDamage logs a damaged file. The engine's own answer would end the process;
// but only the reads that need the damaged block fail, with like.ErrCorrupt.
func (l *Ledger) reportDamage(info pdb.DataCorruptionInfo) {
	l.cfg.Logger.Error("a file of the store is damaged", "file", info.Path, "error", info.Details)
}

// recover checks that the store holds what was acknowledged, and returns the last
// sequence and a stamp above every one given out.
func (l *Ledger) recover() (seq uint64, last like.Stamp, err error) {
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
	return seq, last, l.checkRollback(seq)
}

// checkRollback refuses a store that ends before the last acknowledged batch.
func (l *Ledger) checkRollback(seq uint64) error {
	acked := l.marker.acked.Load()
	if seq >= acked {
		return nil
	}
	if !l.cfg.AcceptRollback {
		return fmt.Errorf("%w: %s ends at batch %d, but batch %d was acknowledged%s",
			like.ErrCorrupt, l.cfg.Dir, seq, acked, advice)
	}
	l.cfg.Logger.Warn("accepted a store that lost acknowledged batches", "ends_at", seq, "acknowledged", acked)
	return l.marker.create(l.cfg.FS, l.cfg.Dir, seq)
}

func sequenceValue(dst []byte, seq uint64, last like.Stamp) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, seq), uint64(last))
}

func parseSequence(value []byte) (uint64, like.Stamp, error) {
	seq, last, err := parseTotal(value)
	return uint64(seq), like.Stamp(last), err
}

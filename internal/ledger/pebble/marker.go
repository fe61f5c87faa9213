package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"likewise/internal/like"
)

// marker is a small file beside the store that holds the sequence of the last
// acknowledged batch. It is synced after the log and before the answer, so a
// store that recovers to a smaller sequence has lost acknowledged commands: the
// end of a log that was torn, flipped or restored from an older copy, which the
// log itself cannot tell from its proper end.
//
// Two slots in two sectors are written in turn, so a torn write leaves the other.
type marker struct {
	file vfs.File
	next int // slot of the next write
}

const (
	markerName     = "acknowledged"
	markerSlot     = 4096
	markerMagic    = 0x6c6b7731 // "lkw1"
	markerBytes    = 16
	markerCategory = "likewise-marker"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openMarker opens or creates the marker in dir and returns the sequence it holds.
func openMarker(fsys vfs.FS, dir string) (*marker, uint64, error) {
	path := fsys.PathJoin(dir, markerName)
	f, err := fsys.OpenReadWrite(path, markerCategory)
	if err != nil {
		return nil, 0, fmt.Errorf("open %s: %w", path, err)
	}
	m := &marker{file: f}
	seq, err := m.read()
	if err == nil {
		return m, seq, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	if err := m.create(fsys, dir); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("create %s: %w", path, err), f.Close())
	}
	return m, 0, nil
}

// read returns the larger sequence of the valid slots. A file that was never
// completed is fs.ErrNotExist; one that was, but has no valid slot, is corrupt.
func (m *marker) read() (uint64, error) {
	b := make([]byte, 2*markerSlot)
	n, err := m.file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if n < len(b) {
		return 0, fs.ErrNotExist
	}
	var best uint64
	found := false
	for slot := range 2 {
		seq, ok := decodeMarker(b[slot*markerSlot:])
		if ok && (!found || seq > best) {
			best, found, m.next = seq, true, 1-slot
		}
	}
	if !found {
		return 0, fmt.Errorf("%w: no valid slot", like.ErrCorrupt)
	}
	return best, nil
}

// create writes both slots, so that later writes need no new blocks.
func (m *marker) create(fsys vfs.FS, dir string) error {
	b := make([]byte, 2*markerSlot)
	encodeMarker(b, 0)
	encodeMarker(b[markerSlot:], 0)
	if _, err := m.file.WriteAt(b, 0); err != nil {
		return err
	}
	if err := m.file.Sync(); err != nil {
		return err
	}
	return syncDir(fsys, dir)
}

// write makes seq durable.
func (m *marker) write(seq uint64) error {
	var b [markerBytes]byte
	encodeMarker(b[:], seq)
	if _, err := m.file.WriteAt(b[:], int64(m.next)*markerSlot); err != nil {
		return err
	}
	m.next = 1 - m.next
	return m.file.SyncData()
}

func (m *marker) close() error { return m.file.Close() }

func encodeMarker(dst []byte, seq uint64) {
	binary.BigEndian.PutUint32(dst, markerMagic)
	binary.BigEndian.PutUint64(dst[4:], seq)
	binary.BigEndian.PutUint32(dst[12:], crc32.Checksum(dst[:12], castagnoli))
}

func decodeMarker(b []byte) (uint64, bool) {
	ok := binary.BigEndian.Uint32(b) == markerMagic &&
		binary.BigEndian.Uint32(b[12:]) == crc32.Checksum(b[:12], castagnoli)
	return binary.BigEndian.Uint64(b[4:]), ok
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

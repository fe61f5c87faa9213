package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"likewise/internal/like"
)

// marker is a small file beside the engine's that holds the sequence of the last
// acknowledged batch. It is synced after the log and before the answer, so a
// store that recovers to a smaller sequence has lost acknowledged commands: the
// end of a log that was torn, flipped or restored from an older copy, which the
// log itself cannot tell from its proper end.
//
// It is the first file of a store and the last of a backup, and it names the
// format of our keys and values. So an engine without a marker is an unfinished
// copy, and what we must not open is refused before the engine touches it.
//
// Two slots in two sectors are written in turn, so a torn write leaves the other.
type marker struct {
	file  vfs.File
	next  int           // slot of the next write
	acked atomic.Uint64 // the sequence it holds durably
}

const (
	markerName     = "acknowledged"
	markerSlot     = 4096
	markerMagic    = 0x6c6b7700 // "lkw", then the store format
	markerBytes    = 16
	markerCategory = "likewise-marker"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openMarker opens the marker in dir. One that does not exist, or was never
// completed, is fs.ErrNotExist; the marker is then there to be filled.
func openMarker(fsys vfs.FS, dir string) (*marker, error) {
	path := fsys.PathJoin(dir, markerName)
	f, err := fsys.OpenReadWrite(path, markerCategory)
	if err != nil {
		return nil, fmt.Errorf("%w: open %s: %w", like.ErrUnavailable, path, err)
	}
	m := &marker{file: f}
	if err := m.read(); err != nil {
		return m, fmt.Errorf("read %s: %w", path, err)
	}
	return m, nil
}

// createMarker puts a marker that holds seq into dir, durably.
func createMarker(fsys vfs.FS, dir string, seq uint64) error {
	m, err := openMarker(fsys, dir)
	if m == nil {
		return err
	}
	return errors.Join(m.create(fsys, dir, seq), m.close())
}

// read takes the larger sequence of the valid slots.
func (m *marker) read() error {
	b := make([]byte, 2*markerSlot)
	n, err := m.file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", like.ErrUnavailable, err)
	}
	if n < len(b) {
		return fs.ErrNotExist
	}
	found := false
	for slot := range 2 {
		seq, format, ok := decodeMarker(b[slot*markerSlot:])
		if ok && format != storeFormat {
			return fmt.Errorf("%w: the store has format %d; this program reads format %d only",
				like.ErrInvalid, format, storeFormat)
		}
		if ok && (!found || seq > m.acked.Load()) {
			found, m.next = true, 1-slot
			m.acked.Store(seq)
		}
	}
	if !found {
		return fmt.Errorf("%w: no valid slot", like.ErrCorrupt)
	}
	return nil
}

// create writes seq to both slots, so that nothing older is left and later writes
// need no new blocks.
func (m *marker) create(fsys vfs.FS, dir string, seq uint64) error {
	b := make([]byte, 2*markerSlot)
	encodeMarker(b, seq)
	encodeMarker(b[markerSlot:], seq)
	_, err := m.file.WriteAt(b, 0)
	if err == nil {
		err = m.file.Sync()
	}
	if err == nil {
		err = syncDir(fsys, dir)
	}
	if err != nil {
		return fmt.Errorf("%w: create the marker: %w", like.ErrUnavailable, err)
	}
	m.acked.Store(seq)
	return nil
}

// write makes seq durable. A failed write is never followed by another.
func (m *marker) write(seq uint64) error {
	var b [markerBytes]byte
	encodeMarker(b[:], seq)
	if _, err := m.file.WriteAt(b[:], int64(m.next)*markerSlot); err != nil {
		return err
	}
	if err := m.file.SyncData(); err != nil {
		return err
	}
	m.next = 1 - m.next
	m.acked.Store(seq)
	return nil
}

func (m *marker) close() error { return m.file.Close() }

func encodeMarker(dst []byte, seq uint64) {
	binary.BigEndian.PutUint32(dst, markerMagic|storeFormat)
	binary.BigEndian.PutUint64(dst[4:], seq)
	binary.BigEndian.PutUint32(dst[12:], crc32.Checksum(dst[:12], castagnoli))
}

func decodeMarker(b []byte) (seq uint64, format byte, ok bool) {
	magic := binary.BigEndian.Uint32(b)
	ok = magic&^0xff == markerMagic &&
		binary.BigEndian.Uint32(b[12:]) == crc32.Checksum(b[:12], castagnoli)
	return binary.BigEndian.Uint64(b[4:]), byte(magic), ok
}

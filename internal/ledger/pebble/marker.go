package pebble

import (
	"cmp"
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

// marker is a small file beside the engine's that says how far the engine's files
// must reach. The engine takes the first unreadable record of a log or a manifest
// for the end that a crash tore off, so it cannot tell a crash from damage or from
// files of an older copy. The marker can: it holds the sequence of the last
// acknowledged batch, synced after the log and before the answer, and the length
// and checksum of the manifest's durable part.
//
// It is the first file of a store and the last of a backup, and it names the
// format of our keys and values. So an engine without a marker is an unfinished
// copy, and what must not be opened is refused before the engine touches it.
//
// Two slots in two sectors are written in turn, so a torn write leaves the other.
type marker struct {
	file  vfs.File
	next  int           // slot of the next write
	acked atomic.Uint64 // the sequence it holds durably; only the committer writes
	known manifestPrefix
}

// manifestPrefix is the durable part of one of the engine's manifests.
type manifestPrefix struct {
	number, size uint64
	sum          uint32
}

const (
	markerName     = "acknowledged"
	markerSlot     = 4096
	markerMagic    = 0x6c6b7700 // "lkw", then the store format
	markerBytes    = 36
	markerCategory = "likewise-marker"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openMarker opens the marker in dir. One that does not exist, or was never
// completed, is fs.ErrNotExist. A marker that is returned with an error can be
// created anew.
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

// read takes the later of the valid slots.
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
		part := b[slot*markerSlot:]
		if !validSlot(part) {
			continue
		}
		if format := part[3]; format != storeFormat {
			return fmt.Errorf("%w: the store has format %d; this program reads format %d only",
				like.ErrInvalid, format, storeFormat)
		}
		seq, known := decodeSlot(part)
		if !found || cmp.Or(cmp.Compare(seq, m.acked.Load()), known.compare(m.known)) > 0 {
			found, m.next, m.known = true, 1-slot, known
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
	encodeSlot(b, seq, manifestPrefix{})
	encodeSlot(b[markerSlot:], seq, manifestPrefix{})
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
	m.known = manifestPrefix{}
	return nil
}

// write makes seq and the manifest's prefix durable, if they are new. After a write
// that failed there must be no other.
func (m *marker) write(seq uint64, known manifestPrefix) error {
	if seq == m.acked.Load() && known == m.known {
		return nil
	}
	var b [markerBytes]byte
	encodeSlot(b[:], seq, known)
	if _, err := m.file.WriteAt(b[:], int64(m.next)*markerSlot); err != nil {
		return err
	}
	if err := m.file.SyncData(); err != nil {
		return err
	}
	m.next, m.known = 1-m.next, known
	m.acked.Store(seq)
	return nil
}

func (m *marker) close() error { return m.file.Close() }

func encodeSlot(dst []byte, seq uint64, p manifestPrefix) {
	binary.BigEndian.PutUint32(dst, markerMagic|storeFormat)
	binary.BigEndian.PutUint64(dst[4:], seq)
	binary.BigEndian.PutUint64(dst[12:], p.number)
	binary.BigEndian.PutUint64(dst[20:], p.size)
	binary.BigEndian.PutUint32(dst[28:], p.sum)
	binary.BigEndian.PutUint32(dst[32:], crc32.Checksum(dst[:32], castagnoli))
}

func validSlot(b []byte) bool {
	return binary.BigEndian.Uint32(b)&^0xff == markerMagic &&
		binary.BigEndian.Uint32(b[32:]) == crc32.Checksum(b[:32], castagnoli)
}

func decodeSlot(b []byte) (seq uint64, p manifestPrefix) {
	p.number = binary.BigEndian.Uint64(b[12:])
	p.size = binary.BigEndian.Uint64(b[20:])
	p.sum = binary.BigEndian.Uint32(b[28:])
	return binary.BigEndian.Uint64(b[4:]), p
}

func (p manifestPrefix) compare(o manifestPrefix) int {
	return cmp.Or(cmp.Compare(p.number, o.number), cmp.Compare(p.size, o.size))
}

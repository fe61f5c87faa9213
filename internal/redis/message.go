package redis

import (
	"encoding/binary"
	"fmt"
	"math"

	"likewise/internal/like"
)

// busFormat is the number of the format of channels and messages.
const busFormat = "bus:1"

// maxMessage bounds what is read of a message; what is written has at most maxBatch
// totals, and is far below.
const maxMessage = 1 << 20

// appendTotals writes a message: for each total the length of the collection, the
// collection, the length of the id, the id, version and count. Numbers are
// unsigned varints.
func appendTotals(b []byte, totals []like.Total) []byte {
	for _, t := range totals {
		b = appendText(b, t.Item.Collection)
		b = appendText(b, t.Item.ID)
		b = binary.AppendUvarint(b, t.Version)
		b = binary.AppendUvarint(b, uint64(t.Count))
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// parseTotals reads a message as a whole. An error is [like.ErrCorrupt].
func parseTotals(message string) ([]like.Total, error) {
	if len(message) > maxMessage {
		return nil, fmt.Errorf("%w: message of %d bytes", like.ErrCorrupt, len(message))
	}
	m := reader{rest: message}
	var totals []like.Total
	for m.rest != "" {
		t := like.Total{Item: like.Item{Collection: m.text(), ID: m.text()}, Version: m.number()}
		count := m.number()
		if m.failed || t.Version == 0 || count > math.MaxInt64 || t.Item.Validate() != nil {
			return nil, fmt.Errorf("%w: message does not parse behind %d totals", like.ErrCorrupt, len(totals))
		}
		t.Count = int64(count)
		totals = append(totals, t)
	}
	return totals, nil
}

// reader takes a message apart.
type reader struct {
	rest   string
	failed bool
}

func (r *reader) number() uint64 {
	// At most ten bytes: the rest would be copied otherwise.
	n, size := binary.Uvarint([]byte(r.rest[:min(len(r.rest), binary.MaxVarintLen64)]))
	if size <= 0 {
		r.failed, r.rest = true, ""
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) text() string {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, ""
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

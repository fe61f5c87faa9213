package live

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"likewise/internal/like"
)

const heartbeat = ":\n\n"

// appendTotal appends one element of "counts". The version is a string because it
// may be larger than a JavaScript number can be.
func appendTotal(b []byte, t like.Total) []byte {
	b = append(b, `{"collection":`...)
	b = appendString(b, t.Item.Collection)
	b = append(b, `,"id":`...)
	b = appendString(b, t.Item.ID)
	b = append(b, `,"count":`...)
	b = strconv.AppendInt(b, t.Count, 10)
	b = append(b, `,"display":"`...)
	b = append(b, like.Display(t.Count)...)
	b = append(b, `","version":"`...)
	b = strconv.AppendUint(b, t.Version, 10)
	return append(b, `"}`...)
}

// appendString appends a JSON string. It has no line breaks, whatever s is.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err) // a string always has a JSON form
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// appendCounts appends the member "counts" and the end of its object.
func appendCounts(b []byte, encoded [][]byte) []byte {
	b = append(b, `"counts":[`...)
	for i, e := range encoded {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, "]}"...)
}

// appendEvent appends one event of a stream. Its id says that with it the client
// knows everything up to seq about a set of items.
func (h *Hub) appendEvent(b []byte, set, seq uint64, encoded [][]byte) []byte {
	b = append(b, "event: counts\nid: "...)
	b = h.appendID(b, set, seq)
	b = append(b, "\ndata: {"...)
	return append(appendCounts(b, encoded), "\n\n"...)
}

// appendMessage appends one WebSocket message.
func appendMessage(b []byte, encoded [][]byte) []byte {
	return appendCounts(append(b, `{"type":"counts",`...), encoded)
}

// appendRetry appends how long a client should wait before it comes back.
func appendRetry(b []byte, wait time.Duration) []byte {
	b = append(b, "retry: "...)
	b = strconv.AppendInt(b, wait.Milliseconds(), 10)
	return append(b, "\n\n"...)
}

func (h *Hub) appendID(b []byte, set, seq uint64) []byte {
	b = append(b, h.epoch...)
	b = append(b, '-')
	b = strconv.AppendUint(b, seq, 36)
	b = append(b, '-')
	return strconv.AppendUint(b, set, 36)
}

// maxIDBytes bounds what is looked at of a Last-Event-ID.
const maxIDBytes = 64

// resumePoint returns the sequence that an id of this hub for a set of items
// names, or 0, which is before everything.
func (h *Hub) resumePoint(id string, set uint64) uint64 {
	if len(id) <= len(h.epoch) || len(id) > maxIDBytes {
		return 0
	}
	digits, _, _ := strings.Cut(id[len(h.epoch)+1:], "-")
	seq, err := strconv.ParseUint(digits, 36, 64)
	if err != nil || string(h.appendID(nil, set, seq)) != id {
		return 0
	}
	return seq
}

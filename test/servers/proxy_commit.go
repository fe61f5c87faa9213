package servers

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
)

// CommitFault says what becomes of the COMMIT of a transaction and of its
// connection.
type CommitFault int

// A COMMIT may come through, may be lost on the way to the server, or be done by the
// server with the answer lost. The client of the last two sees the same: a reset.
const (
	NoFault CommitFault = iota
	CommitLost
	AnswerLost
)

// OnCommit decides about each COMMIT from now on, in a transaction of any
// connection; nil lets all come through. choose is called concurrently.
func (p *TCPProxy) OnCommit(choose func() CommitFault) { p.commits.choose.Store(&choose) }

// Fired returns how often a fault has happened: for AnswerLost, how many
// transactions were committed whose client was not told.
func (p *TCPProxy) Fired(f CommitFault) int { return int(p.commits.fired[f].Load()) }

type commitFaults struct {
	choose atomic.Pointer[func() CommitFault]
	fired  [AnswerLost + 1]atomic.Int64
}

func (c *commitFaults) next() CommitFault {
	if choose := c.choose.Load(); choose != nil && *choose != nil {
		return (*choose)()
	}
	return NoFault
}

// Types of messages and codes of the first one, from the PostgreSQL manual, chapter
// "Frontend/Backend Protocol", "Message Formats".
const (
	msgQuery, msgParse, msgBind, msgExecute = 'Q', 'P', 'B', 'E'
	msgCommandComplete, msgError            = 'C', 'E'

	codeSSL, codeGSS = 80877103, 80877104
)

// forward returns how both directions of a PostgreSQL connection are read: message
// by message.
func (c *commitFaults) forward(k *link) (up, down take) {
	s := &statements{prepared: map[string]bool{}, bound: map[string]bool{}}
	var started bool           // the client is past asking for encryption
	var questions atomic.Int32 // answered by one byte that is no message
	up = func(r *bufio.Reader) ([]byte, error) {
		if !started {
			code, b, err := readStart(r)
			started = code != codeSSL && code != codeGSS
			if !started {
				questions.Add(1)
			}
			return b, err
		}
		kind, b, err := readMessage(r)
		if err != nil || !s.commits(kind, b[headerSize:]) {
			return b, err
		}
		return b, c.atCommit(k)
	}
	down = func(r *bufio.Reader) ([]byte, error) {
		if _, err := r.Peek(1); err != nil {
			return nil, err
		}
		if questions.Load() > 0 {
			questions.Add(-1)
			b := make([]byte, 1)
			_, err := io.ReadFull(r, b)
			return b, err
		}
		kind, b, err := readMessage(r)
		if err != nil || !k.answerLost.Load() {
			return b, err
		}
		return b, c.atAnswer(k, kind, string(b[headerSize:]))
	}
	return up, down
}

// atCommit decides about a COMMIT that the client has sent.
func (c *commitFaults) atCommit(k *link) error {
	switch c.next() {
	case CommitLost:
		c.fired[CommitLost].Add(1)
		return errLost
	case AnswerLost:
		k.answerLost.Store(true)
	}
	return nil
}

// atAnswer decides about an answer while that to a COMMIT is to be lost.
func (c *commitFaults) atAnswer(k *link, kind byte, text string) error {
	switch {
	case kind == msgCommandComplete && text == "COMMIT\x00":
		c.fired[AnswerLost].Add(1)
		return errLost
	case kind == msgError, kind == msgCommandComplete && text == "ROLLBACK\x00":
		k.answerLost.Store(false) // nothing was committed
	}
	return nil
}

// statements knows which statements of a connection are a COMMIT.
type statements struct {
	prepared map[string]bool // by name
	bound    map[string]bool // by portal
}

// commits reports whether a message of the client makes the server commit.
func (s *statements) commits(kind byte, body []byte) bool {
	first, rest := cutString(body)
	second, _ := cutString(rest)
	switch kind {
	case msgQuery:
		return isCommit(first)
	case msgParse:
		set(s.prepared, first, isCommit(second))
	case msgBind:
		set(s.bound, first, s.prepared[second])
	case msgExecute:
		return s.bound[first]
	}
	return false
}

func set(names map[string]bool, name string, in bool) {
	if in {
		names[name] = true
	} else {
		delete(names, name)
	}
}

func isCommit(sql string) bool {
	words := strings.Fields(strings.ToLower(strings.TrimRight(sql, "; \t\n")))
	return len(words) > 0 && (words[0] == "commit" || words[0] == "end") && (len(words) == 1 || words[1] != "prepared")
}

// cutString returns the text before the first zero byte and what comes after it.
func cutString(b []byte) (string, []byte) {
	text, rest, _ := bytes.Cut(b, []byte{0})
	return string(text), rest
}

const (
	headerSize = 5        // of a message: its type and its length without the type
	maxMessage = 64 << 20 // more than any test sends
)

// readStart reads the first message of a client, which has no type.
func readStart(r *bufio.Reader) (code uint32, b []byte, err error) {
	if b, err = readSized(r, 0); err != nil || len(b) < 8 {
		return 0, b, err
	}
	return binary.BigEndian.Uint32(b[4:]), b, nil
}

// readMessage reads any later message, with its header.
func readMessage(r *bufio.Reader) (kind byte, b []byte, err error) {
	if b, err = readSized(r, 1); err != nil {
		return 0, nil, err
	}
	return b[0], b, nil
}

// readSized reads what is as long as the number after its first skip bytes says.
func readSized(r *bufio.Reader, skip int) ([]byte, error) {
	header, err := r.Peek(skip + 4)
	if err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(header[skip:])
	if size < 4 || size > maxMessage {
		return nil, fmt.Errorf("a PostgreSQL message of %d bytes", size)
	}
	b := make([]byte, skip+int(size))
	_, err = io.ReadFull(r, b)
	return b, err
}

package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"math"
	"strconv"
	"time"
)

const maxLine = 1 << 20 // bytes of one line of a stream

var errLine = errors.New("a line of the stream is too long")

// event is one event of a stream, or a change of how to come back without one.
type event struct {
	name  string        // "message" unless the server named it
	data  string        // lines joined by a line feed
	id    string        // the last id of the stream so far
	retry time.Duration // -1 unless the server said how long to wait
}

// events reads a stream of server-sent events as the HTML standard defines it. An
// event without data is yielded only for its retry. The last element is the error
// that ended the stream, io.EOF included; id is where the reader stands already.
func events(r io.Reader, id string, alive func()) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 4<<10), maxLine)
		lines.Split((&splitter{}).split)
		e, data, first := event{id: id, retry: -1}, []byte(nil), true
		for lines.Scan() {
			alive()
			line := lines.Bytes()
			if first {
				line, first = bytes.TrimPrefix(line, []byte("\ufeff")), false
			}
			if len(line) > 0 {
				data = e.field(line, data)
				continue
			}
			if n := len(data); n > 0 {
				e.data = string(data[:n-1])
			}
			if e.name == "" {
				e.name = "message"
			}
			if (len(data) > 0 || e.retry >= 0) && !yield(e, nil) {
				return
			}
			e, data = event{id: e.id, retry: -1}, data[:0]
		}
		yield(event{}, endOf(lines.Err()))
	}
}

func endOf(err error) error {
	switch {
	case err == nil:
		return io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return errLine
	}
	return err
}

// field takes in one line that is not empty, and returns the data so far, each
// line with its line feed.
func (e *event) field(line, data []byte) []byte {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.name = string(value)
	case "data":
		return append(append(data, value...), '\n')
	case "id":
		if !bytes.Contains(value, []byte{0}) {
			e.id = string(value)
		}
	case "retry":
		if ms, ok := digits(value); ok {
			e.retry = ms
		}
	}
	return data
}

// digits reads milliseconds, and nothing that is not a digit.
func digits(text []byte) (time.Duration, bool) {
	if len(text) == 0 || len(bytes.Trim(text, "0123456789")) > 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n > math.MaxInt64/int64(time.Millisecond) {
		n = math.MaxInt64 / int64(time.Millisecond)
	}
	return time.Duration(n) * time.Millisecond, true
}

// splitter splits at LF, CR and CRLF. What follows the last line end is no line.
type splitter struct {
	cr bool // the line before ended with CR, so that an LF belongs to it
}

func (s *splitter) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	skip := 0
	if s.cr && len(data) > 0 {
		s.cr = false
		if data[0] == '\n' {
			skip = 1
		}
	}
	end := bytes.IndexAny(data[skip:], "\r\n")
	if end < 0 {
		if atEOF {
			return len(data), nil, nil
		}
		return skip, nil, nil
	}
	s.cr = data[skip+end] == '\r'
	return skip + end + 1, data[skip : skip+end : skip+end], nil
}

package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// LiveCount is one entry of an event of a stream. Of one item the larger version
// is the newer count.
type LiveCount struct {
	Item
	Count   int64  `json:"count"`
	Display string `json:"display"`
	Version uint64 `json:"version,string"`
}

// Frame is what stands between two empty lines of a stream. A sign of life has
// nothing but its comment.
type Frame struct {
	Event  string
	ID     string        // empty when it has none
	Retry  time.Duration // -1 when it does not say
	Data   string
	Counts []LiveCount // what Data says, when Event is counts
}

// Stream is one open stream of server-sent events, on a connection of its own.
// It is used by one goroutine, and closed by its owner or the end of its context.
type Stream struct {
	conn net.Conn
	body *bufio.Reader
	stop func() bool
}

// Stream opens a stream of the items' counts as a user. lastID is that of an
// earlier stream of the same items, or empty.
func (c *Client) Stream(ctx context.Context, user, lastID string, items ...Item) (*Stream, error) {
	r := streamRequest(user, lastID, items)
	s, req, err := c.dialStream(ctx, r, false)
	if err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(bufio.NewReader(s.conn), req)
	if err == nil {
		c.status[res.StatusCode/100].Add(1)
		s.body = bufio.NewReader(res.Body)
		err = mustBeStream(r, res)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	return s, nil
}

func mustBeStream(r Request, res *http.Response) error {
	if res.StatusCode != http.StatusOK {
		body, err := io.ReadAll(res.Body)
		return errors.Join(problem(r, Response{Status: res.StatusCode, Header: res.Header, Body: body}), err)
	}
	if kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); kind != "text/event-stream" {
		return fmt.Errorf("it is %q", kind)
	}
	return nil
}

// Stall opens a stream as a client that has room for almost nothing, sees that it
// is accepted, and then never reads. The caller closes it.
func (c *Client) Stall(ctx context.Context, user string, items ...Item) (*Stream, error) {
	s, _, err := c.dialStream(ctx, streamRequest(user, "", items), true)
	if err != nil {
		return nil, err
	}
	const accepted = "HTTP/1.1 200"
	status := make([]byte, len(accepted))
	if _, err = io.ReadFull(s.conn, status); err == nil && string(status) != accepted {
		err = fmt.Errorf("answered %q", status)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open a stream that stalls: %w", err)
	}
	return s, nil
}

func streamRequest(user, lastID string, items []Item) Request {
	query := strings.TrimPrefix(CountsPath(items...), "/v1/likes/counts")
	r := Request{Method: http.MethodGet, Path: "/v1/likes/stream" + query, User: user, Header: http.Header{}}
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	return r
}

// dialStream connects to the next node and sends the request. A connection with
// tiny buffers takes the least that the system allows.
func (c *Client) dialStream(ctx context.Context, r Request, tiny bool) (*Stream, *http.Request, error) {
	base, err := url.Parse(c.urls[c.turn.Add(1)%uint64(len(c.urls))])
	if err != nil {
		return nil, nil, err
	}
	req, err := c.request(ctx, base.String(), r)
	if err != nil {
		return nil, nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", base.Host)
	if err != nil {
		return nil, nil, err
	}
	s := &Stream{conn: conn, stop: context.AfterFunc(ctx, func() { conn.Close() })}
	if tiny {
		err = conn.(*net.TCPConn).SetReadBuffer(1)
	}
	if err == nil {
		err = req.Write(conn)
	}
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, req, nil
}

// Close drops the connection. More than once is the same as once.
func (s *Stream) Close() {
	s.stop()
	s.conn.Close()
}

// errFrame is the kind of what must not be in a stream, unlike an end of it.
var errFrame = errors.New("broken frame")

// Next returns the next frame. After the last whole one it returns [io.EOF], and
// when the stream breaks within one [io.ErrUnexpectedEOF].
func (s *Stream) Next() (Frame, error) {
	f := Frame{Retry: -1}
	seen := map[string]bool{}
	for lines := 0; ; lines++ {
		line, err := s.body.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF) && (lines > 0 || line != ""):
			return f, io.ErrUnexpectedEOF
		case err != nil:
			return f, err
		case line == "\n" && lines == 0:
			return f, fmt.Errorf("%w: it is empty", errFrame)
		case line == "\n":
			return f, f.decode(seen)
		}
		if err := f.field(strings.TrimSuffix(line, "\n"), seen); err != nil {
			return f, err
		}
	}
}

// field takes one line: a comment, or a field of those that are documented, once.
func (f *Frame) field(line string, seen map[string]bool) (err error) {
	if strings.HasPrefix(line, ":") {
		return nil
	}
	name, value, ok := strings.Cut(line, ": ")
	if !ok || value == "" || seen[name] {
		return fmt.Errorf("%w: line %q", errFrame, line)
	}
	seen[name] = true
	switch name {
	case "event":
		f.Event = value
	case "id":
		f.ID = value
	case "data":
		f.Data = value
	case "retry":
		var ms uint64
		ms, err = strconv.ParseUint(value, 10, 31)
		f.Retry = time.Duration(ms) * time.Millisecond
	default:
		err = fmt.Errorf("unknown field %q", name)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errFrame, err)
	}
	return err
}

// decode takes the whole frame: an event is one of counts.
func (f *Frame) decode(seen map[string]bool) error {
	if !seen["event"] && !seen["data"] {
		return nil
	}
	var body struct {
		Counts []LiveCount `json:"counts"`
	}
	if f.Event != "counts" || f.ID == "" {
		return fmt.Errorf("%w: event %q with id %q", errFrame, f.Event, f.ID)
	}
	if err := Decode([]byte(f.Data), &body); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	for _, n := range body.Counts {
		if n.Count < 0 || n.Display == "" {
			return fmt.Errorf("%w: %+v", errFrame, n)
		}
	}
	f.Counts = body.Counts
	return nil
}

package live

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"likewise/internal/like"
)

// Stream answers a request with the counts of items as server-sent events: all of
// them, or what changed since its Last-Event-ID, and then every change. v must be
// verified, and items valid. An error means that nothing was answered yet; its kind
// is one of package like or [ErrTooMany], and Retry-After is set where it helps. nil
// means that the stream goes on without this goroutine, or has ended.
func (h *Hub) Stream(w http.ResponseWriter, r *http.Request, v Viewer, items []like.Item) error {
	if r.Method == http.MethodHead {
		streamHeader(w.Header())
		w.WriteHeader(http.StatusOK)
		return nil
	}
	var err error
	if bareStreams && r.ProtoMajor == 1 && r.TLS == nil {
		err = h.streamBare(w, r, v, items)
	} else {
		err = h.streamPlain(r, v, items, func() (outlet, error) { return newAnswer(w) })
	}
	return retryAfter(w.Header(), err)
}

// retryAfter tells a refused viewer when a place may be free.
func retryAfter(header http.Header, err error) error {
	if errors.Is(err, ErrTooMany) {
		header.Set("Retry-After", strconv.Itoa(5+rand.IntN(10)))
	}
	return err
}

func streamHeader(header http.Header) {
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
}

// answerHead is the head of an answer whose body ends with the connection.
func answerHead(header http.Header) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	header.Set("Connection", "close")
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	_ = header.Write(&b) // a Buffer takes everything
	b.WriteString("\r\n")
	return b.Bytes()
}

// resume returns the set that a client watches, and the sequence that a
// Last-Event-ID proves to be known to it: 0 when it is no id of this set and hub.
func (h *Hub) resume(c *client, id string) (set, after uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.audience == nil {
		return 0, 0
	}
	set = c.audience.set
	if after = h.resumePoint(id, set); after > h.seq {
		after = 0
	}
	return set, after
}

// outlet is where a stream with a goroutine is written.
type outlet interface {
	// send writes and flushes before the deadline, or fails.
	send(b []byte, deadline time.Time) error
}

// answer is a stream in the body of an answer.
type answer struct {
	http.ResponseWriter
	*http.ResponseController
}

func newAnswer(w http.ResponseWriter) (outlet, error) {
	control := http.NewResponseController(w)
	streamHeader(w.Header())
	w.WriteHeader(http.StatusOK)
	return answer{w, control}, control.Flush()
}

func (a answer) send(b []byte, deadline time.Time) error {
	// Not every ResponseWriter has deadlines; then the connection's own keep holding.
	_ = a.SetWriteDeadline(deadline)
	if _, err := a.Write(b); err != nil {
		return err
	}
	if err := a.Flush(); err != nil {
		return err
	}
	_ = a.SetWriteDeadline(time.Time{})
	return nil
}

// wire is a stream on a connection that was taken over.
type wire struct{ net.Conn }

func (w wire) send(b []byte, deadline time.Time) error {
	_ = w.SetWriteDeadline(deadline)
	_, err := w.Write(b)
	return err
}

// streamPlain serves a stream in the caller's goroutine, until the request ends.
// open starts the answer.
func (h *Hub) streamPlain(r *http.Request, v Viewer, items []like.Item, open func() (outlet, error)) error {
	c := h.newClient(overPlainSSE, v)
	p := newPump(c)
	c.sink = p
	if err := h.enter(c); err != nil {
		return err
	}
	defer h.remove(c)
	if err := h.join(r.Context(), c, items); err != nil {
		return err
	}
	out, err := open()
	if err != nil {
		return clientGone(r.Context(), err)
	}
	p.serve(r.Context(), out, r.Header.Get("Last-Event-ID"))
	return nil
}

// clientGone is the failure of an answer: the client's doing.
func clientGone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(context.Canceled, err)
}

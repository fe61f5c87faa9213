package live

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"likewise/internal/like"
)

// bareStreams says whether streams without a goroutine exist on this system.
const bareStreams = true

// bare is the sink of a stream without a goroutine. Writers write to its socket as
// much as that takes at once; the rest of a frame waits for the poller.
type bare struct {
	*client

	mu   sync.Mutex
	conn net.Conn // nil until the answer starts
	raw  syscall.RawConn
	key  pollKey
	gone bool
	set  uint64 // what the client watches
	// sent is the sequence up to which the client was told everything, rest included.
	// Without a rest it has missed no frame of its audience.
	sent uint64
	rest []byte // of the frame that the socket did not take
	from time.Time
}

// streamBare serves a stream without a goroutine.
func (h *Hub) streamBare(w http.ResponseWriter, r *http.Request, v Viewer, items []like.Item) error {
	c := h.newClient(overSSE, v)
	s := &bare{client: c}
	c.sink = s
	if err := h.enter(c); err != nil {
		return err
	}
	if err := h.join(r.Context(), c, items); err != nil {
		h.remove(c)
		return err
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if errors.Is(err, http.ErrNotSupported) {
		h.remove(c)
		return h.streamPlain(r, v, items, func() (outlet, error) { return newAnswer(w) })
	}
	if err != nil {
		h.remove(c)
		return clientGone(r.Context(), err)
	}
	streamHeader(w.Header())
	head := answerHead(w.Header())
	if err := s.open(conn, head, r.Header.Get("Last-Event-ID")); err == nil {
		return nil
	}
	// The connection is of a kind that cannot be polled.
	h.remove(c)
	defer conn.Close()
	return h.streamPlain(r, v, items, func() (outlet, error) {
		out := wire{conn}
		return out, out.send(head, time.Now().Add(h.cfg.WriteTimeout))
	})
}

// open starts the answer on a connection, which belongs to the sink from then on,
// unless it fails.
func (s *bare) open(conn net.Conn, head []byte, lastID string) error {
	system, ok := conn.(syscall.Conn)
	if !ok {
		return errors.ErrUnsupported
	}
	raw, err := system.SyscallConn()
	if err != nil {
		return err
	}
	h := s.hub
	p, err := h.poll()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	setOptions(raw, h.cfg)
	s.conn, s.raw = conn, raw
	b := appendRetry(head, h.retry(0))
	var after uint64
	s.set, after = h.resume(s.client, lastID)
	b, s.sent = s.appendNews(b, after)
	if s.key, err = p.add(s); err != nil {
		s.conn, s.raw = nil, nil
		return err
	}
	s.push(b)
	if s.gone { // told to end before it began
		s.close()
	}
	return nil
}

func (s *bare) appendNews(b []byte, after uint64) ([]byte, uint64) {
	encoded, seq := s.hub.news(s.client, after, nil)
	if len(encoded) == 0 {
		return b, seq
	}
	s.hub.metrics.frames.Inc()
	return s.hub.appendEvent(b, s.set, seq, encoded), seq
}

// setOptions bounds what the kernel keeps for a client that does not read, and how
// long it believes in one that does not answer. Both are improvements only.
func setOptions(raw syscall.RawConn, cfg Config) {
	const tcpUserTimeout = 18 // in milliseconds; not in package syscall
	_ = raw.Control(func(fd uintptr) {
		if cfg.SendBuffer > 0 {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, cfg.SendBuffer)
		}
		patience := cfg.Heartbeat + cfg.WriteTimeout
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(patience.Milliseconds()))
	})
}

func (s *bare) offer(f frame, event []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.conn == nil || s.gone || s.sent >= f.to:
	case len(s.rest) > 0:
		s.hub.metrics.skipped.Inc()
	default:
		s.sent = f.to
		s.hub.metrics.frames.Inc()
		s.push(event)
	}
}

// catchUp sends everything that the client was not told yet, in its newest form.
func (s *bare) catchUp() {
	var b []byte
	if b, s.sent = s.appendNews(nil, s.sent); len(b) > 0 {
		s.push(b)
	}
}

func (s *bare) tick(now time.Time, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.conn == nil || s.gone:
	case len(s.rest) > 0:
		if now.Sub(s.from) >= s.hub.cfg.WriteTimeout {
			s.hub.metrics.slow.Inc()
			s.close()
		}
	case due:
		s.push([]byte(heartbeat))
	}
}

func (s *bare) end(wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && !s.gone && len(s.rest) == 0 {
		s.push(appendRetry(nil, wait))
	}
	s.close()
}

func (s *bare) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// writable goes on where the socket was full, and then with what is new.
func (s *bare) writable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || len(s.rest) == 0 {
		return
	}
	b := s.rest
	s.rest = nil
	if s.push(b); s.gone || len(s.rest) > 0 {
		return
	}
	s.hub.poller.arm(s, false)
	s.catchUp()
}

// push writes what the socket takes now and keeps a copy of the rest.
func (s *bare) push(b []byte) {
	n, err := s.write(b)
	switch {
	case err != nil:
		s.close()
	case n < len(b):
		s.rest = append([]byte(nil), b[n:]...)
		s.from = time.Now()
		s.hub.poller.arm(s, true)
	}
}

// write does not wait for the socket.
func (s *bare) write(b []byte) (n int, err error) {
	if failed := s.raw.Write(func(fd uintptr) bool {
		for {
			n, err = syscall.Write(int(fd), b)
			if err != syscall.EINTR {
				return true
			}
		}
	}); failed != nil {
		return 0, failed
	}
	if err == syscall.EAGAIN {
		return 0, nil
	}
	return n, err
}

// close ends the stream. A client that has not begun is told by its handler.
func (s *bare) close() {
	s.gone = true
	if s.conn == nil {
		return
	}
	s.hub.poller.remove(s.key)
	_ = s.conn.Close() // nothing is left to be lost
	s.conn, s.raw, s.rest = nil, nil, nil
	s.hub.remove(s.client)
}

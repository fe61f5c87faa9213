package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"likewise/internal/like"
)

// ErrOrigin says that a page of this origin may not open a WebSocket.
var ErrOrigin = errors.New("origin is not allowed")

// Socket answers a request with a WebSocket, over which the client says what it
// watches: {"subscribe":{"posts":["1"]}} and {"unsubscribe":{…}}. v must be verified.
// An error means that nothing was answered yet, as for Stream, or is [ErrOrigin].
// nil means that the connection goes on without this goroutine.
func (h *Hub) Socket(w http.ResponseWriter, r *http.Request, v Viewer) error {
	if !h.allows(r) {
		return fmt.Errorf("%w: %s", ErrOrigin, r.Header.Get("Origin"))
	}
	// The request's context ends with this handler.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	c := h.newClient(overWebSocket, v)
	s := &socket{pump: newPump(c), cancel: cancel}
	c.sink = s
	if err := h.enter(c); err != nil {
		cancel()
		return retryAfter(w.Header(), err)
	}
	conn, err := accept(w, r)
	if err != nil {
		cancel()
		h.remove(c)
		return err
	}
	conn.SetReadLimit(h.cfg.MessageBytes)
	s.conn = conn
	if !h.start(func() { s.run(ctx) }) {
		cancel()
		_ = conn.CloseNow()
		h.remove(c)
	}
	return nil
}

// allows reports whether a request comes from no page, from a page of this server,
// or from one of a configured origin.
func (h *Hub) allows(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(h.cfg.Origins, origin) || slices.Contains(h.cfg.Origins, "*") {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// accept does the handshake. It leaves a refusal to the caller.
func accept(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	shy := &handshake{ResponseWriter: w}
	conn, err := websocket.Accept(shy, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // allows has looked
	if err != nil {
		for _, name := range []string{"Connection", "Sec-WebSocket-Accept"} {
			w.Header().Del(name)
		}
		return nil, fmt.Errorf("%w: this is for WebSocket handshakes over HTTP/1.1", like.ErrInvalid)
	}
	return conn, nil
}

// handshake keeps the library from answering a refused handshake.
type handshake struct {
	http.ResponseWriter
	refused bool
}

func (s *handshake) WriteHeader(status int) {
	if s.refused = status >= 400; !s.refused {
		s.ResponseWriter.WriteHeader(status)
	}
}

func (s *handshake) Write(b []byte) (int, error) {
	if s.refused {
		return len(b), nil
	}
	return s.ResponseWriter.Write(b)
}

// Unwrap is for finding the http.Hijacker.
func (s *handshake) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// socket is the sink of a WebSocket client. One goroutine reads what it wants,
// another writes what it gets.
type socket struct {
	*pump
	conn   *websocket.Conn
	cancel context.CancelFunc

	mu   sync.Mutex // orders what is written; held while it is
	sent uint64     // sequence up to which the client was told everything
}

func (s *socket) stop() {
	s.pump.stop()
	s.cancel()
}

// run serves the connection to its end.
func (s *socket) run(ctx context.Context) {
	defer s.hub.remove(s.client)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer s.conn.CloseNow()
	defer s.cancel()
	_, s.sent = s.hub.news(s.client, 0, nil) // it watches nothing yet
	wg.Go(func() {
		defer s.cancel()
		s.write(ctx)
	})
	s.read(ctx)
}

// write sends what is new, pings, and says goodbye.
func (s *socket) write(ctx context.Context) {
	for {
		err := error(nil)
		select {
		case <-ctx.Done():
			return
		case <-s.quit:
			if s.wait > 0 {
				_ = s.conn.Close(websocket.StatusServiceRestart, "retry: "+strconv.FormatInt(s.wait.Milliseconds(), 10))
			}
			return
		case <-s.due:
			err = s.ping(ctx)
		case <-s.fresh:
			err = s.deliver(ctx, nil)
		}
		if err != nil {
			return
		}
	}
}

func (s *socket) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.hub.cfg.WriteTimeout)
	defer cancel()
	return s.conn.Ping(ctx)
}

// deliver sends the newest totals of the named items, or else what is new.
func (s *socket) deliver(ctx context.Context, named []like.Item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var encoded [][]byte
	if named != nil {
		encoded = s.hub.show(named)
	} else {
		encoded, s.sent = s.hub.news(s.client, s.sent, nil)
	}
	if len(encoded) == 0 {
		return nil
	}
	s.hub.metrics.frames.Inc()
	return s.send(ctx, appendMessage(nil, encoded))
}

func (s *socket) send(ctx context.Context, text []byte) error {
	timed, cancel := context.WithTimeout(ctx, s.hub.cfg.WriteTimeout)
	defer cancel()
	err := s.conn.Write(timed, websocket.MessageText, text)
	if err != nil && ctx.Err() == nil {
		s.hub.lost(timed.Err())
	}
	return err
}

// show returns the published totals of items.
func (h *Hub) show(items []like.Item) (encoded [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, item := range items {
		if e := h.items[item]; e != nil && e.known {
			encoded = append(encoded, e.encoded)
		}
	}
	return encoded
}

// read does what the client asks for. A message that is not one ends it.
func (s *socket) read(ctx context.Context) {
	var watched []like.Item
	allowance := newAllowance(s.hub.cfg.MessageRate, s.hub.cfg.MessageBurst)
	for {
		kind, text, err := s.conn.Read(ctx)
		if err != nil {
			return
		}
		switch {
		case kind != websocket.MessageText:
			err = fmt.Errorf("%w: a message must be text", like.ErrInvalid)
		case !allowance.take(time.Now()):
			err = fmt.Errorf("%w: more than %g messages a second", ErrTooMany, s.hub.cfg.MessageRate)
		default:
			watched, err = s.obey(ctx, text, watched)
		}
		if err != nil {
			s.refuse(ctx, err)
			return
		}
	}
}

// obey does what one message says to the list of watched items.
func (s *socket) obey(ctx context.Context, text []byte, watched []like.Item) ([]like.Item, error) {
	m, err := parseMessage(text, s.hub.cfg.MaxItems)
	if err != nil {
		return watched, err
	}
	watched = slices.DeleteFunc(watched, func(i like.Item) bool { return slices.Contains(m.unsubscribe, i) })
	for _, item := range m.subscribe {
		if !slices.Contains(watched, item) {
			watched = append(watched, item)
		}
	}
	if err := s.hub.join(ctx, s.client, watched); err != nil {
		return watched, err
	}
	return watched, s.deliver(ctx, m.subscribe)
}

// refuse tells the client what was wrong and closes the connection.
func (s *socket) refuse(ctx context.Context, err error) {
	status, code, detail := websocket.StatusTryAgainLater, "unavailable", ""
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, like.ErrInvalid):
		status, code, detail = websocket.StatusPolicyViolation, "invalid_message", err.Error()
	case errors.Is(err, ErrTooMany):
		status, code, detail = websocket.StatusPolicyViolation, "rate_limited", err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.send(ctx, appendError(nil, code, detail)) == nil {
		_ = s.conn.Close(status, code)
	}
}

func appendError(b []byte, code, detail string) []byte {
	b = append(b, `{"type":"error","code":"`...)
	b = append(b, code...)
	b = append(b, `","detail":`...)
	return append(appendString(b, detail), '}')
}

// allowance is a token bucket of one connection.
type allowance struct {
	rate, burst, left float64
	last              time.Time
}

func newAllowance(rate float64, burst int) *allowance {
	return &allowance{rate: rate, burst: float64(burst), left: float64(burst), last: time.Now()}
}

func (a *allowance) take(now time.Time) bool {
	a.left = min(a.burst, a.left+now.Sub(a.last).Seconds()*a.rate)
	a.last = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

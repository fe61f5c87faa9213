package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"likewise/internal/like"
)

// handler is as much of the API as tests of streams need.
func handler(h *Hub) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, err error) {
		switch {
		case err == nil:
		case errors.Is(err, ErrTooMany):
			w.WriteHeader(http.StatusTooManyRequests)
		case errors.Is(err, ErrOrigin):
			w.WriteHeader(http.StatusForbidden)
		case errors.Is(err, like.ErrInvalid):
			w.WriteHeader(http.StatusBadRequest)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "r1")
		answer(w, h.Stream(w, r, Viewer{}, posts(strings.Split(r.URL.Query().Get("posts"), ",")...)))
	})
	mux.HandleFunc("GET /ws", func(w http.ResponseWriter, r *http.Request) { answer(w, h.Socket(w, r, Viewer{})) })
	return mux
}

// serve serves a hub on loopback and returns its address.
func serve(t testing.TB, h *Hub) (*httptest.Server, string) {
	t.Helper()
	server := httptest.NewServer(handler(h))
	t.Cleanup(server.Close)
	return server, server.Listener.Addr().String()
}

// dial connects with a receive buffer of a size; with a small one a client that does
// not read is noticed soon.
func dial(t testing.TB, addr string, buffer int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if buffer > 0 {
		_ = c.(*net.TCPConn).SetReadBuffer(buffer)
	}
	return c
}

// request opens a stream for what page knows already, on a connection.
func request(t testing.TB, c net.Conn, p *page, ids ...string) {
	t.Helper()
	head := "GET /stream?posts=" + strings.Join(ids, ",") + " HTTP/1.1\r\nHost: x\r\n"
	if p.lastID != "" {
		head += "Last-Event-ID: " + p.lastID + "\r\n"
	}
	if _, err := io.WriteString(c, head+"\r\n"); err != nil {
		t.Fatal(err)
	}
}

// reading is a page that reads a stream in a goroutine of its own.
type reading struct {
	mu sync.Mutex
	*page
	conn  net.Conn
	ended chan struct{}
}

func read(t testing.TB, addr string, buffer int, ids ...string) *reading {
	t.Helper()
	r := &reading{page: newPage(), conn: dial(t, addr, buffer), ended: make(chan struct{})}
	request(t, r.conn, r.page, ids...)
	in := bufio.NewReader(r.conn)
	if answer := readHead(t, in); answer.StatusCode != http.StatusOK {
		t.Fatalf("answer %s", answer.Status)
	}
	go func() {
		defer close(r.ended)
		_, _ = io.Copy(r, in)
	}()
	t.Cleanup(func() {
		_ = r.conn.Close()
		<-r.ended
	})
	return r
}

func (r *reading) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.page.Write(b)
}

func (r *reading) shows(id string, count int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	got, ok := r.total[id]
	return ok && got == count
}

func TestStreamHead(t *testing.T) {
	h, stop := startHub(t, testConfig(), newSource())
	defer stop()
	server, addr := serve(t, h)
	c := dial(t, addr, 0)
	request(t, c, newPage(), "1")
	answer := readHead(t, bufio.NewReader(c))
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store",
		"X-Accel-Buffering": "no", "X-Request-Id": "r1",
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, err := http.ParseTime(answer.Header.Get("Date")); err != nil || !answer.Close {
		t.Errorf("date %v, close %v", err, answer.Close)
	}
	head, err := http.Head(server.URL + "/stream?posts=1")
	if err != nil || head.StatusCode != 200 || head.Header.Get("Content-Type") != answer.Header.Get("Content-Type") {
		t.Errorf("HEAD: %v %v", head, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestCutAtRandom is a browser whose connection breaks after any byte, again and
// again, while numbers move.
func TestCutAtRandom(t *testing.T) {
	cuts := 200
	if os.Getenv("LIKEWISE_HEAVY") != "" {
		cuts = 1000
	}
	s := newSource()
	cfg := testConfig()
	cfg.Interval = time.Millisecond
	h, stop := startHub(t, cfg, s)
	defer stop()
	_, addr := serve(t, h)
	random := rand.New(rand.NewPCG(1, 2))
	ids := []string{"1", "2", "3", "4", "5"}
	p := newPage()
	for n := range cuts {
		s.set(ids[random.IntN(len(ids))], int64(n))
		c := dial(t, addr, 0)
		request(t, c, p, ids...)
		in := bufio.NewReader(c)
		readHead(t, in)
		limit := random.IntN(600)
		if n > 0 && p.lastID == "" {
			limit = 1000
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Duration(random.IntN(5)) * time.Millisecond))
		s.set(ids[random.IntN(len(ids))], int64(n))
		_, _ = io.Copy(p, io.LimitReader(in, int64(limit)))
		p.cut()
		_ = c.Close()
	}
	last := read(t, addr, 0, ids...)
	resumed := dial(t, addr, 0)
	request(t, resumed, p, ids...)
	in := bufio.NewReader(resumed)
	readHead(t, in)
	want := map[string]int64{}
	for _, id := range ids {
		want[id] = s.count(id)
		eventually(t, "a new page shows item "+id, func() bool { return last.shows(id, want[id]) })
	}
	_ = resumed.SetReadDeadline(time.Now().Add(time.Minute))
	for !maps.Equal(p.total, want) {
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%v; shows %v, want %v", err, p.total, want)
		}
		_, _ = p.Write(line)
	}
	p.mustShow(t, want)
	if p.events < cuts/20 {
		t.Errorf("only %d events in %d connections: nothing was tested", p.events, cuts)
	}
}

// TestShutdown drains a server with 100 streams, one of which never reads.
func TestShutdown(t *testing.T) {
	s := newSource()
	h, stop := startHub(t, testConfig(), s)
	defer stop()
	server, addr := serve(t, h)
	all := make([]*reading, 99)
	for i := range all {
		all[i] = read(t, addr, 0, "1")
	}
	request(t, dial(t, addr, 1), newPage(), "1")
	eventually(t, "all are connected", func() bool { return h.open() == 100 })
	s.set("1", 5)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.Drain(ctx); err != nil {
		t.Fatalf("Drain: %v", err)
	}
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	waits := map[time.Duration]bool{}
	for _, r := range all {
		<-r.ended
		waits[r.retry] = true
	}
	if len(waits) < 80 {
		t.Errorf("%d different times to come back for 99 streams", len(waits))
	}
}

// opaque hides that a connection has a descriptor.
type opaque struct{ net.Listener }

func (o opaque) Accept() (net.Conn, error) {
	c, err := o.Listener.Accept()
	return struct{ net.Conn }{c}, err
}

// TestConnectionThatCannotBePolled is one that a listener of somebody else wrapped.
func TestConnectionThatCannotBePolled(t *testing.T) {
	s := newSource()
	cfg := testConfig()
	cfg.Heartbeat = 20 * time.Millisecond
	h, stop := startHub(t, cfg, s)
	defer stop()
	server := httptest.NewUnstartedServer(handler(h))
	server.Listener = opaque{server.Listener}
	server.Start()
	defer server.Close()
	r := read(t, server.Listener.Addr().String(), 0, "1")
	s.set("1", 4)
	eventually(t, "a change is shown", func() bool { return r.shows("1", 4) })
	_ = r.conn.Close()
	eventually(t, "the heartbeat finds out", func() bool { return h.open() == 0 })
}

// TestStreamsInRandomOrder has clients come, go and stall while numbers move and
// the hub drains, for the race detector.
func TestStreamsInRandomOrder(t *testing.T) {
	s := newSource()
	cfg := testConfig()
	cfg.Interval, cfg.Heartbeat, cfg.SendBuffer = time.Millisecond, 5*time.Millisecond, 1
	h, stop := startHub(t, cfg, s)
	defer stop()
	_, addr := serve(t, h)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for worker := range 8 {
		random := rand.New(rand.NewPCG(uint64(worker), 3))
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				c, err := net.Dial("tcp", addr)
				if err != nil {
					return
				}
				fmt.Fprintf(c, "GET /stream?posts=1,%d HTTP/1.1\r\nHost: x\r\n\r\n", random.IntN(3))
				_ = c.SetReadDeadline(time.Now().Add(time.Duration(random.IntN(10)) * time.Millisecond))
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := range 300 {
		<-tick.C
		s.set(strconv.Itoa(n%3), int64(n))
		if n == 200 {
			_ = h.Drain(t.Context())
		}
	}
	close(done)
	wg.Wait()
	eventually(t, "all have left", func() bool { return h.open() == 0 })
}

package live

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// bound is a ResponseWriter whose connection cannot be taken over.
type bound struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (b bound) FlushError() error                   { return b.control.Flush() }
func (b bound) SetWriteDeadline(at time.Time) error { return b.control.SetWriteDeadline(at) }

// TestPlainStreams serves clients whose connections are not taken over, for longer
// than a request may take.
func TestPlainStreams(t *testing.T) {
	const most = 2 * time.Second
	for _, tt := range []struct {
		name string
		over func(*httptest.Server)
	}{
		{"HTTP/2", func(s *httptest.Server) {
			s.EnableHTTP2 = true
			s.StartTLS()
		}},
		{"HTTP/1.1", func(s *httptest.Server) {
			next := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(bound{w, http.NewResponseController(w)}, r)
			})
			s.Start()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSource()
			cfg := testConfig()
			cfg.WriteTimeout = most
			h, stop := startHub(t, cfg, s)
			defer stop()
			server := httptest.NewUnstartedServer(handler(h))
			server.Config.ReadTimeout, server.Config.WriteTimeout = most, most
			tt.over(server)
			defer server.Close()
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/stream?posts=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.Proto[:len(tt.name)] != tt.name || answer.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
				t.Errorf("%s %v", answer.Proto, answer.Header)
			}
			follow := &reading{page: newPage(), ended: make(chan struct{})}
			go func() {
				defer close(follow.ended)
				_, _ = io.Copy(follow, answer.Body)
			}()
			for count := range int64(3) {
				if count > 0 {
					<-time.After(most + most/4)
				}
				s.set("1", count)
				eventually(t, "a change is shown", func() bool { return follow.shows("1", count) })
			}
			if n := value(h.metrics.clients[overPlainSSE]); n != 1 {
				t.Errorf("%v plain clients", n)
			}
			cancel()
			<-follow.ended
			eventually(t, "the stream has ended", func() bool { return h.open() == 0 })
		})
	}
}

// TestPlainClientThatStalls is dropped when it has not taken a frame in time.
func TestPlainClientThatStalls(t *testing.T) {
	s := newSource()
	cfg := testConfig()
	cfg.WriteTimeout = 50 * time.Millisecond
	h, stop := startHub(t, cfg, s)
	defer stop()
	next := handler(h)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(bound{w, http.NewResponseController(w)}, r)
	}))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(1)
		return ctx
	}
	server.Start()
	defer server.Close()
	ids := make([]string, 50)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	request(t, dial(t, server.Listener.Addr().String(), 1), newPage(), ids...)
	count := int64(0)
	eventually(t, "it is found to be slow", func() bool {
		count++
		for _, id := range ids {
			s.set(id, count)
		}
		return value(h.metrics.slow) == 1
	})
	eventually(t, "it is dropped", func() bool { return h.open() == 0 })
}

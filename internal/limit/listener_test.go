package limit

import (
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"likewise/internal/like"
)

// startServer serves fn over a limited loopback listener until the test ends.
func startServer(t *testing.T, cfg ConnConfig, fn http.HandlerFunc) (*Listener, string) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(inner, cfg)
	server := &http.Server{Handler: fn}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return l, inner.Addr().String()
}

// dial opens a connection and reports whether it is served.
func dial(t *testing.T, addr string) (net.Conn, bool) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	var b [12]byte
	_, err = io.ReadFull(c, b[:])
	return c, err == nil && string(b[:]) == "HTTP/1.1 200"
}

func ok(http.ResponseWriter, *http.Request) {}

func TestListenerBounds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cfg    ConnConfig
		served int
	}{
		{"total", ConnConfig{Total: 3}, 3},
		{"per address", ConnConfig{Total: 5, PerAddress: 2}, 2},
		{"trusted proxy", ConnConfig{Total: 4, PerAddress: 2, Trusted: prefixes("127.0.0.0/8")}, 4},
		{"no bound", ConnConfig{}, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, addr := startServer(t, tt.cfg, ok)
			for i := range 6 {
				if _, served := dial(t, addr); served != (i < tt.served) {
					t.Fatalf("connection %d served: %v", i+1, served)
				}
			}
			open, refused := l.Stats()
			if open != tt.served || refused != uint64(6-tt.served) {
				t.Fatalf("open %d, refused %d", open, refused)
			}
		})
	}
}

func TestListenerFreesClosed(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(inner, ConnConfig{Total: 1, PerAddress: 1})
	defer l.Close()
	for range 3 {
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		c.Close() // a second close must not free a second place
		if open, _ := l.Stats(); open != 0 || len(l.perKey) != 0 {
			t.Fatalf("open %d, keys %v after close", open, l.perKey)
		}
	}
}

// TestListenerHalfClose: net/http ends its half of a connection first when it
// answers without having read the whole body, or the answer would be lost.
func TestListenerHalfClose(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(inner, DefaultConn())
	defer l.Close()
	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Fatalf("client reads %d, %v; want the end", n, err)
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("server reads %d, %v; want the other half open", n, err)
	}
}

func TestConnConfig(t *testing.T) {
	if err := DefaultConn().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []ConnConfig{{Total: -1}, {PerAddress: -1}} {
		if err := cfg.Validate(); !errors.Is(err, like.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestTakenOverConnection takes a connection over from net/http: it can be polled,
// and counts until it is closed.
func TestTakenOverConnection(t *testing.T) {
	taken := make(chan net.Conn, 1)
	l, addr := startServer(t, ConnConfig{Total: 1}, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		taken <- c
	})
	dial(t, addr)
	c := <-taken
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(uintptr) {}); err != nil {
		t.Error(err)
	}
	if open, _ := l.Stats(); open != 1 {
		t.Errorf("%d connections count, want 1", open)
	}
	c.Close()
	if open, _ := l.Stats(); open != 0 {
		t.Errorf("%d connections count after the end, want 0", open)
	}
	pipe, _ := net.Pipe()
	if _, err := (&conn{Conn: pipe}).SyscallConn(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a connection without a descriptor: %v", err)
	}
}

package client_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"likewise/client"
	"likewise/internal/auth"
	"likewise/internal/counts"
	"likewise/internal/httpapi"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/internal/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tokens takes every token but one for a user of that name.
type tokens struct{}

func (tokens) Verify(_ context.Context, token string) (auth.Identity, error) {
	switch token {
	case "nobody":
		return auth.Identity{}, auth.ErrUnauthenticated
	case "backend":
		return auth.Identity{User: "backend", Scopes: []string{auth.ScopeWriteAny, auth.ScopeImport}}, nil
	}
	return auth.Identity{User: like.User(token)}, nil
}

func (t tokens) Known(token string) (auth.Identity, bool) {
	identity, err := t.Verify(context.Background(), token)
	return identity, err == nil
}

// service is the real API over a ledger in memory.
type service struct {
	*httptest.Server
	ledger *memory.Ledger
	hub    *live.Hub
	lines  lines
	stop   func()
}

// lines is a listener that can cut every connection, also one that a handler took over.
type lines struct {
	net.Listener
	mu   sync.Mutex
	open []net.Conn
}

func (l *lines) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, conn)
	return conn, err
}

// cut returns how many connections were still open.
func (l *lines) cut() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.open {
		if conn != nil && conn.Close() == nil {
			n++
		}
	}
	l.open = nil
	return n
}

func newService() *service {
	log := slog.New(slog.DiscardHandler)
	s := &service{ledger: memory.New(memory.Config{})}
	cfg := live.DefaultConfig()
	cfg.Interval, cfg.Retry, cfg.RetrySpread, cfg.DrainSpread = 10*time.Millisecond, time.Millisecond, 0, 0
	var err error
	if s.hub, err = live.New(cfg, s.ledger, log, nil); err != nil {
		panic(err)
	}
	cursors, err := like.NewCursors([]byte("a cursor key of thirty-two bytes"))
	if err != nil {
		panic(err)
	}
	totals := counts.New(s.ledger, nil, counts.DefaultConfig(), nil)
	api, err := httpapi.New(httpapi.DefaultConfig(), httpapi.Deps{
		Ledger: s.ledger, Counts: totals, Live: s.hub, Auth: tokens{}, Cursors: cursors, Log: log,
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = totals.Run(ctx, s.ledger) })
	wg.Go(func() { _ = s.hub.Run(ctx, s.ledger) })
	s.Server = httptest.NewUnstartedServer(api)
	s.lines.Listener, s.Listener = s.Listener, &s.lines
	s.Start()
	s.stop = func() {
		cancel()
		wg.Wait()
		s.Close()
		s.ledger.Close()
		http.DefaultClient.CloseIdleConnections()
	}
	return s
}

func start(t *testing.T) *service {
	s := newService()
	t.Cleanup(s.stop)
	return s
}

// as returns a client with a token of a user.
func (s *service) as(token string) *client.Client {
	c, err := client.New(s.URL, client.Options{
		Token: func(context.Context) (string, error) { return token, nil },
	})
	if err != nil {
		panic(err)
	}
	return c
}

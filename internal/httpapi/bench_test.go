package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"likewise/internal/auth"
	"likewise/internal/counts"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

func benchAPI(b *testing.B) *fuzzed {
	b.Helper()
	cursors, err := like.NewCursors([]byte("a cursor key of thirty-two bytes"))
	if err != nil {
		b.Fatal(err)
	}
	l := memory.New(memory.Config{})
	b.Cleanup(func() { l.Close() })
	verifier, err := auth.New(benchTokens(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	a := &api{
		site:   &site{cfg: DefaultConfig(), auth: verifier, log: slog.New(slog.DiscardHandler), metrics: newMetrics(nil, "bench")},
		ledger: l, counts: counts.New(l, nil, counts.DefaultConfig(), nil), cursors: cursors,
	}
	return &fuzzed{a, a.handler(a.routes())}
}

func benchTokens() auth.Config {
	cfg := auth.DefaultConfig()
	cfg.Secret = []byte("a token secret of at least thirty-two bytes")
	return cfg
}

func benchToken(b *testing.B, scopes ...string) string {
	b.Helper()
	token, err := auth.Sign(benchTokens(), "u1", scopes, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	return token
}

// loop sends one request over and over on one connection of each goroutine.
func loop(b *testing.B, h http.Handler, request string) {
	server := httptest.NewServer(h)
	defer server.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for pb.Next() {
			if _, err := io.WriteString(conn, request); err != nil {
				b.Error(err)
				return
			}
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != http.StatusOK {
				b.Errorf("%v %v", res, err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
}

// BenchmarkHTTP compares a read over loopback with a handler that does nothing. The
// client's own work is in both. Package server measures likes in the same way.
func BenchmarkHTTP(b *testing.B) {
	head := " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + benchToken(b) + "\r\n\r\n"
	b.Run("empty", func(b *testing.B) {
		loop(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"liked":true,"count":124}`)
		}), "GET /v1/posts/7123456789/like"+head)
	})
	b.Run("counts20", func(b *testing.B) {
		loop(b, benchAPI(b).handler, "GET /v1/likes/counts?posts=1"+ids(2, 20)+head)
	})
}

// discard is a ResponseWriter that keeps nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkHandler measures the handlers without a connection.
func BenchmarkHandler(b *testing.B) {
	var commands []string
	for i := range 1000 {
		commands = append(commands, lineOf("like", fmt.Sprint("71234567890", i), fmt.Sprint("user-", i)))
	}
	for name, c := range map[string]call{
		"put":       {method: "PUT", target: "/v1/posts/7123456789/like", token: benchToken(b)},
		"counts20":  {method: "GET", target: "/v1/likes/counts?posts=1" + ids(2, 20), token: benchToken(b)},
		"anonymous": {method: "GET", target: "/v1/likes/counts?posts=1" + ids(2, 20)},
		"batch1000": {method: "POST", target: "/v1/likes:batch", token: benchToken(b, auth.ScopeWriteAny), body: commandsOf(commands...)},
	} {
		b.Run(name, func(b *testing.B) {
			h := benchAPI(b)
			r := httptest.NewRequest(c.method, c.target, nil)
			r.Header.Set("Content-Type", "application/json")
			if c.token != "" {
				r.Header.Set("Authorization", "Bearer "+c.token)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.body)), int64(len(c.body))
				h.handler.ServeHTTP(&discard{http.Header{}}, r)
			}
		})
	}
}

func BenchmarkDecodeBatch1000(b *testing.B) {
	var commands []string
	for i := range 1000 {
		commands = append(commands, lineOf("like", fmt.Sprint("71234567890", i), fmt.Sprint("user-", i)))
	}
	text, a := commandsOf(commands...), benchAPI(b).api
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := a.batchBody(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodePage20(b *testing.B) {
	page := make([]counts.Entry, 20)
	for i := range page {
		page[i].Total = like.Total{Item: like.Item{Collection: "posts", ID: fmt.Sprint("71234567890", i)}, Count: 1_204_331}
	}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = appendPage(out[:0], page, true, nil)
	}
}

package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/httpapi"
	"likewise/internal/limit"
)

// This file sends one more than a limit allows over real connections.

// dial opens a connection to the public listener.
func (r *running) dial() net.Conn {
	r.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.api, "http://"))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		r.Fatal(err)
	}
	return conn
}

// ask sends a request with a URL and a head, up to its empty line, of these sizes.
func (r *running) ask(url, head int) (status int, kind string) {
	r.Helper()
	conn := r.dial()
	path := "/v1/likes/counts?posts=1"
	path += strings.Repeat(","+strings.Repeat("x", 99), url/100)
	path = path[:url-1] + "x"
	text := "GET " + path + " HTTP/1.1\r\nHost: x\r\nX-Filling: "
	text += strings.Repeat("x", max(0, head-len(text)-4)) + "\r\n\r\n"
	go func() { _, _ = io.WriteString(conn, text) }() // ends with the connection at the latest
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.Fatalf("URL of %d bytes, head of %d: %v", url, head, err)
	}
	res.Body.Close()
	return res.StatusCode, res.Header.Get("Content-Type")
}

func TestSizesOfAHead(t *testing.T) {
	const (
		kib  = 1 << 10
		page = "application/json; charset=utf-8"
		slop = 4 * kib // net/http takes that much more than it is told
	)
	cfg := testConfig(t)
	cfg.Limits.MaxURLBytes, cfg.Limits.MaxHeaderBytes = 1*kib, 8*kib
	r := start(t, cfg, testOptions())
	for _, tc := range []struct {
		name      string
		url, head int
		status    int
		kind      string
	}{
		{"longest URL", 1 * kib, 0, 200, page},
		{"URL and one byte", 1*kib + 1, 0, 414, "application/problem+json; charset=utf-8"},
		{"largest head", 100, 8 * kib, 200, page},
		{"largest head that is taken", 100, 8*kib + slop, 200, page},
		{"that and one byte", 100, 8*kib + slop + 1, 431, "text/plain; charset=utf-8"},
	} {
		if status, kind := r.ask(tc.url, tc.head); status != tc.status || kind != tc.kind {
			t.Errorf("%s: %d %s, want %d %s", tc.name, status, kind, tc.status, tc.kind)
		}
	}
}

// served reports whether a connection is, and not closed without an answer.
func served(conn net.Conn) bool {
	_, _ = fmt.Fprint(conn, "GET /v1/likes/counts?posts=1 HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close()) == nil && res.StatusCode == http.StatusOK
}

func TestOneConnectionTooMany(t *testing.T) {
	for name, lower := range map[string]func(*config.Limits){
		"in all":           func(l *config.Limits) { l.MaxConnections = 2 },
		"from one address": func(l *config.Limits) { l.MaxConnectionsPerAddress = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			lower(&cfg.Limits)
			r := start(t, cfg, testOptions())
			one, two := r.dial(), r.dial()
			if !served(one) || !served(two) {
				t.Fatal("a connection within the limit is not served")
			}
			if served(r.dial()) {
				t.Error("one connection too many is served")
			}
			if !served(one) || !served(two) {
				t.Error("the others suffer from it")
			}
			one.Close()
			for open := 2; open > 1; open, _ = r.public.listener.Stats() {
				if !served(two) { // until the server has noticed
					t.Fatal("the other connection suffers from the end of one")
				}
			}
			if !served(r.dial()) {
				t.Error("the place of a closed connection stays taken")
			}
		})
	}
}

// TestFixedLimitsAreDocumented compares the reference with limits that are no settings.
func TestFixedLimitsAreDocumented(t *testing.T) {
	api, reference := httpapi.DefaultConfig(), strings.ReplaceAll(config.Reference(), ",", "")
	for _, row := range []string{
		fmt.Sprintf("| token; 431 above | %d KiB |", auth.MaxTokenBytes>>10),
		fmt.Sprintf("| connections to the admin listener | %d |", adminConnections),
		fmt.Sprintf("| URL %d KiB body %d MiB; %.0f s for health", api.MaxURLBytes>>10, api.MaxBodyBytes>>20, api.RequestTimeout.Seconds()),
		fmt.Sprintf("| verified tokens that are remembered | %d |", auth.DefaultConfig().CacheTokens),
		fmt.Sprintf("| %d and %d; others share", limit.DefaultUser().MaxKeys, limit.DefaultAddress().MaxKeys),
		fmt.Sprintf("| wait before idle connections are closed at a shutdown | %d ms |", drainPause.Milliseconds()),
	} {
		if !strings.Contains(reference, row) {
			t.Errorf("docs/config.md does not say %q", row)
		}
	}
}

package server

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// TestStopEndsStreams stops a server with 100 open streams, one of which never
// reads: the others are told when to come back.
func TestStopEndsStreams(t *testing.T) {
	cfg := testConfig(t)
	cfg.Live.MaxStreamsPerAddress = 0
	r := start(t, cfg, testOptions())
	r.want(200, "", "PUT", r.api+"/v1/posts/1/like", r.token("ann"), "")
	streams := make([]net.Conn, 100)
	for i := range streams {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.api, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET /v1/likes/stream?posts=1 HTTP/1.1\r\nHost: x\r\n\r\n")
		if i > 0 {
			until(t, c, `"count":1,`)
		}
		streams[i] = c
	}
	if open, _ := r.public.listener.Stats(); open < 100 {
		t.Errorf("%d connections count, want those of all streams", open)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	waits := map[string]bool{}
	for _, c := range streams[1:] {
		rest, err := io.ReadAll(c)
		_, wait, told := strings.Cut(string(rest), "retry: ")
		if err != nil || !told {
			t.Fatalf("a stream ended with %q, %v", rest, err)
		}
		waits[wait] = true
	}
	if len(waits) < 80 {
		t.Errorf("%d different times to come back for 99 streams", len(waits))
	}
	if open, _ := r.public.listener.Stats(); open != 0 {
		t.Errorf("%d connections count after the end", open)
	}
}

// until reads a stream up to some text.
func until(t *testing.T, c net.Conn, text string) {
	t.Helper()
	var got []byte
	for b := make([]byte, 1024); !strings.Contains(string(got), text); {
		n, err := c.Read(b)
		if got = append(got, b[:n]...); err != nil {
			t.Fatalf("%v after %q", err, got)
		}
	}
}

package live

import (
	"bufio"
	"bytes"
	"net"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBareStreams keep no goroutine, and notice that their peer has left.
func TestBareStreams(t *testing.T) {
	s := newSource()
	h, stop := startHub(t, testConfig(), s)
	defer stop()
	_, addr := serve(t, h)
	conns := make([]net.Conn, 100)
	for i := range conns {
		conns[i] = dial(t, addr, 0)
		request(t, conns[i], newPage(), "1")
		readHead(t, bufio.NewReader(conns[i]))
	}
	eventually(t, "no handler is left", func() bool {
		var all bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
		return !strings.Contains(all.String(), "live.(*Hub).Stream") && !strings.Contains(all.String(), "net/http.(*conn).serve")
	})
	if n := value(h.metrics.clients[overSSE]); n != 100 {
		t.Errorf("%v clients without a goroutine, want 100", n)
	}
	for _, c := range conns[:60] {
		_ = c.Close()
	}
	for _, c := range conns[60:80] {
		_ = c.(*net.TCPConn).SetLinger(0) // a reset instead of an end
		_ = c.Close()
	}
	for _, c := range conns[80:90] {
		_ = c.(*net.TCPConn).CloseWrite()
	}
	eventually(t, "the closed ones are gone", func() bool { return h.open() == 10 })
	h.poller.mu.Lock()
	defer h.poller.mu.Unlock()
	if n := len(h.poller.sinks); n != 10 {
		t.Errorf("%d connections polled, want 10", n)
	}
}

// TestStalledReaders have others see every change while some never read.
func TestStalledReaders(t *testing.T) {
	s := newSource()
	cfg := testConfig()
	cfg.SendBuffer, cfg.WriteTimeout = 1, 2*time.Second
	h, stop := startHub(t, cfg, s)
	defer stop()
	_, addr := serve(t, h)
	ids := make([]string, 50)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	for range 5 {
		request(t, dial(t, addr, 1), newPage(), ids...)
	}
	slow := dial(t, addr, 1)
	catching := newPage()
	request(t, slow, catching, ids...)
	good := make([]*reading, 10)
	for i := range good {
		good[i] = read(t, addr, 0, ids...)
	}
	count := int64(0)
	for h.open() > len(good) { // every stalled one is dropped in the end
		count++
		for _, id := range ids {
			s.set(id, count)
		}
		for _, g := range good {
			eventually(t, "a reader is up to date", func() bool { return g.shows("49", count) })
		}
	}
	if n := value(h.metrics.slow); n != 6 {
		t.Errorf("%v clients dropped, want 6", n)
	}
	if value(h.metrics.skipped) == 0 {
		t.Error("no frame was spared for the stalled ones")
	}
	late := read(t, addr, 0, ids...)
	eventually(t, "a new stream works", func() bool { return late.shows("0", count) })
}

// TestSlowReaderGetsWholeFrames stops reading and goes on: what was cut short is
// completed, and then the newest values come.
func TestSlowReaderGetsWholeFrames(t *testing.T) {
	const last = int64(1) << 40
	s := newSource()
	cfg := testConfig()
	cfg.SendBuffer, cfg.WriteTimeout = 16<<10, 2*time.Minute // nobody is dropped
	h, stop := startHub(t, cfg, s)
	defer stop()
	_, addr := serve(t, h)
	ids := make([]string, 50)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	c := dial(t, addr, 32<<10)
	p := newPage()
	request(t, c, p, ids...)
	count := int64(0)
	eventually(t, "the reader is too slow", func() bool {
		count++
		for _, id := range ids {
			s.set(id, count)
		}
		return value(h.metrics.skipped) > 3
	})
	skipped := value(h.metrics.skipped)
	s.set("0", last)
	eventually(t, "one more frame is left out", func() bool { return value(h.metrics.skipped) > skipped })
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(c)
	readHead(t, in)
	for p.total["0"] != last {
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%v; shows %v", err, p.total)
		}
		_, _ = p.Write(line)
	}
	want := map[string]int64{}
	for _, id := range ids {
		want[id] = count
	}
	want["0"] = last
	p.mustShow(t, want)
	h.mu.Lock()
	defer h.mu.Unlock()
	if uint64(p.events) >= h.seq {
		t.Errorf("%d events of %d flushes: none was left out", p.events, h.seq)
	}
}

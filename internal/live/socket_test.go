package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"likewise/internal/like"
)

// peer is a WebSocket client.
type peer struct {
	*page
	*websocket.Conn
	t testing.TB
}

func connect(t testing.TB, addr string) *peer {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return &peer{newPage(), c, t}
}

func (p *peer) say(text string) {
	p.t.Helper()
	if err := p.Conn.Write(p.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// until reads messages until the page shows this.
func (p *peer) until(id string, count int64) {
	p.t.Helper()
	for got, ok := p.total[id]; !ok || got != count; got, ok = p.total[id] {
		_, text, err := p.Read(p.t.Context())
		if err != nil {
			p.t.Fatalf("%v; shows %v", err, p.total)
		}
		if !strings.HasPrefix(string(text), `{"type":"counts","counts":[`) {
			p.t.Fatalf("message %q", text)
		}
		p.message(text)
	}
}

// end reads to the end and returns the error message before it, if there was one,
// and how the server closed.
func (p *peer) end() (code string, status websocket.StatusCode, reason string) {
	for {
		_, text, err := p.Read(p.t.Context())
		if closed, ok := errors.AsType[websocket.CloseError](err); ok {
			return code, closed.Code, closed.Reason
		}
		if err != nil {
			return code, -1, err.Error()
		}
		var m struct{ Type, Code, Detail string }
		if json.Unmarshal(text, &m) == nil && m.Type == "error" && m.Detail != "" {
			code = m.Code
		}
	}
}

func TestSocket(t *testing.T) {
	s := newSource()
	h, stop := startHub(t, testConfig(), s)
	defer stop()
	_, addr := serve(t, h)
	s.set("1", 10)
	p, q := connect(t, addr), connect(t, addr)
	p.say(`{"subscribe":{"posts":["1","2"]}}`)
	q.say(`{"subscribe":{"posts":["2"]}}`)
	p.until("2", 0)
	p.mustShow(t, map[string]int64{"1": 10, "2": 0})
	q.until("2", 0)
	s.set("2", 1)
	p.until("2", 1)
	q.until("2", 1)
	p.say(`{"subscribe":{"posts":["3"]},"unsubscribe":{"posts":["2"]}}`)
	p.until("3", 0)
	s.set("2", 2)
	q.until("2", 2)
	s.set("3", 5)
	p.until("3", 5)
	p.mustShow(t, map[string]int64{"1": 10, "2": 1, "3": 5})
	p.say(`{"unsubscribe":{"posts":["1","3"]}}`)
	p.say(`{"subscribe":{"posts":["2"]}}`)
	p.until("2", 2)
	if n := value(h.metrics.clients[overWebSocket]); n != 2 {
		t.Errorf("%v WebSocket clients", n)
	}
	_ = p.Close(websocket.StatusNormalClosure, "")
	_ = q.CloseNow()
	eventually(t, "both have left", func() bool { return h.open() == 0 })
	if h.mu.Lock(); len(h.audiences) != 0 {
		t.Errorf("%d audiences left", len(h.audiences))
	}
	h.mu.Unlock()
}

func TestSocketProtocol(t *testing.T) {
	many := func(n int) string {
		var ids []string
		for i := range n {
			ids = append(ids, fmt.Sprint(i))
		}
		return `{"subscribe":{"posts":["` + strings.Join(ids, `","`) + `"]}}`
	}
	for _, tt := range []struct {
		name   string
		say    []string
		binary bool
		code   string
		status websocket.StatusCode
	}{
		{name: "not JSON", say: []string{`x`}},
		{name: "empty", say: []string{``}},
		{name: "unknown field", say: []string{`{"subscribe":{"posts":["1"]},"user":"u"}`}},
		{name: "other case", say: []string{`{"Subscribe":{"posts":["1"]}}`}},
		{name: "field twice", say: []string{`{"subscribe":{"posts":["1"]},"subscribe":{}}`}},
		{name: "collection twice", say: []string{`{"subscribe":{"posts":["1"],"posts":["2"]}}`}},
		{name: "something behind it", say: []string{`{"subscribe":{"posts":["1"]}} {}`}},
		{name: "nothing in it", say: []string{`{}`}},
		{name: "no item", say: []string{`{"subscribe":{"posts":[]}}`}},
		{name: "number as id", say: []string{`{"subscribe":{"posts":[1]}}`}},
		{name: "empty id", say: []string{`{"subscribe":{"posts":[""]}}`}},
		{name: "bad collection", say: []string{`{"subscribe":{"Posts":["1"]}}`}},
		{name: "half a pair", say: []string{`{"subscribe":{"posts":["\ud800"]}}`}},
		{name: "not UTF-8", say: []string{"{\"subscribe\":{\"posts\":[\"\xff\"]}}"}},
		{name: "an item too many", say: []string{many(51)}},
		{name: "an item too many in two", say: []string{many(50), `{"subscribe":{"games":["1"]}}`}},
		{name: "binary", say: []string{`{"subscribe":{"posts":["1"]}}`}, binary: true},
		{name: "too often", say: slicesOf(`{"subscribe":{"posts":["1"]}}`, 21), code: "rate_limited"},
		{name: "too large", say: []string{strings.Repeat(" ", 16<<10+1)}, code: "-", status: websocket.StatusMessageTooBig},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := testConfig()
			cfg.MessageRate = 0.001
			h, stop := startHub(t, cfg, newSource())
			defer stop()
			_, addr := serve(t, h)
			p := connect(t, addr)
			kind := websocket.MessageText
			if tt.binary {
				kind = websocket.MessageBinary
			}
			for _, text := range tt.say {
				_ = p.Conn.Write(t.Context(), kind, []byte(text))
			}
			wantCode, wantStatus := tt.code, tt.status
			if wantCode == "" {
				wantCode = "invalid_message"
			}
			if wantStatus == 0 {
				wantStatus = websocket.StatusPolicyViolation
			}
			code, status, reason := p.end()
			if wantCode == "-" {
				wantCode, reason = "", code
			}
			if code != wantCode || status != wantStatus || reason != code {
				t.Errorf("error %q, closed with %d %q; want %q and %d", code, status, reason, wantCode, wantStatus)
			}
			eventually(t, "the server has let go", func() bool { return h.open() == 0 })
		})
	}
}

func slicesOf(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

func TestSocketTakesAllItems(t *testing.T) {
	h, stop := startHub(t, testConfig(), newSource())
	defer stop()
	_, addr := serve(t, h)
	p := connect(t, addr)
	var ids []string
	for i := range 50 {
		ids = append(ids, fmt.Sprint(i))
	}
	p.say(`{"subscribe":{"posts":["` + strings.Join(ids, `","`) + `"]}}`)
	p.until("49", 0)
	p.say(`{"subscribe":{"posts":["49"]}}`)
	p.say(`{"unsubscribe":{"posts":["0"]},"subscribe":{"games":["x"]}}`)
	p.until("x", 0)
}

func TestSocketHandshake(t *testing.T) {
	cfg := testConfig()
	cfg.Origins = []string{"https://app.example"}
	h, stop := startHub(t, cfg, newSource())
	defer stop()
	server, addr := serve(t, h)
	for origin, ok := range map[string]bool{
		"": true, "https://app.example": true, "http://" + addr: true, "https://" + addr: true,
		"https://evil.example": false, "http://app.example": false, "https://app.example.evil": false, "null": false, "https://": false,
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		c, answer, err := websocket.Dial(t.Context(), "ws://"+addr+"/ws", &websocket.DialOptions{HTTPHeader: header})
		if (err == nil) != ok || !ok && answer.StatusCode != http.StatusForbidden {
			t.Errorf("origin %q: %v", origin, err)
		}
		if c != nil {
			_ = c.CloseNow()
		}
	}
	answer, err := server.Client().Get(server.URL + "/ws")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest || answer.ContentLength != 0 {
		t.Errorf("without a handshake: %s with %d bytes", answer.Status, answer.ContentLength)
	}
	eventually(t, "all are gone", func() bool { return h.open() == 0 })
}

// TestSocketLiveness has one client answer pings and one that does not.
func TestSocketLiveness(t *testing.T) {
	s := newSource()
	cfg := testConfig()
	cfg.Heartbeat, cfg.WriteTimeout = 20*time.Millisecond, 2*time.Second
	h, stop := startHub(t, cfg, s)
	defer stop()
	_, addr := serve(t, h)
	pings := make(chan struct{}, 2)
	alive, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/ws", &websocket.DialOptions{
		OnPingReceived: func(context.Context, []byte) bool { signal(pings); return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer alive.CloseNow()
	alive.CloseRead(t.Context())
	connect(t, addr) // reads nothing, so that it answers nothing
	eventually(t, "the silent one is dropped", func() bool { return h.open() == 1 })
	<-pings
	<-pings
}

func TestSocketDrain(t *testing.T) {
	h, stop := startHub(t, testConfig(), newSource())
	defer stop()
	_, addr := serve(t, h)
	p := connect(t, addr)
	p.say(`{"subscribe":{"posts":["1"]}}`)
	p.until("1", 0)
	silent := connect(t, addr)
	eventually(t, "both are connected", func() bool { return h.open() == 2 })
	enough := errors.New("waited enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	told := make(chan error, 1)
	go func() { told <- h.Drain(ctx) }()
	if _, status, reason := p.end(); status != websocket.StatusServiceRestart || !strings.HasPrefix(reason, "retry: ") {
		t.Errorf("closed with %d %q", status, reason)
	}
	cancel(enough)
	if err := <-told; !errors.Is(err, enough) {
		t.Errorf("Drain = %v, want that the silent one had to be cut off", err)
	}
	eventually(t, "the silent one is gone", func() bool { return h.open() == 0 })
	_ = silent.CloseNow()
	if _, answer, err := websocket.Dial(t.Context(), "ws://"+addr+"/ws", nil); err == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a handshake after that: %v", err)
	}
}

func TestSocketWhileTheLedgerFails(t *testing.T) {
	s := newSource()
	h, stop := startHub(t, testConfig(), s)
	defer stop()
	_, addr := serve(t, h)
	s.with(func() { s.fail = like.ErrUnavailable })
	p := connect(t, addr)
	p.say(`{"subscribe":{"posts":["1"]}}`)
	if _, status, reason := p.end(); status != websocket.StatusTryAgainLater || reason != "unavailable" {
		t.Errorf("closed with %d %q", status, reason)
	}
}

func TestParseMessage(t *testing.T) {
	got, err := parseMessage([]byte(` {"subscribe" : {"posts":["1","\u00e9"],"games":["<&>"]}, "unsubscribe":{"posts":["2"]}} `), 3)
	want := message{
		subscribe:   append(posts("1", "é"), like.Item{Collection: "games", ID: "<&>"}),
		unsubscribe: posts("2"),
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(message{})); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := parseMessage([]byte("{\"subscribe\":{\"posts\":[\"\uFFFD\"]}}"), 1); err != nil {
		t.Errorf("U+FFFD itself: %v", err)
	}
}

func FuzzWSMessage(f *testing.F) {
	for _, seed := range []string{
		`{"subscribe":{"posts":["1"]}}`, `{"unsubscribe":{"posts":["1","2"],"games":["7"]}}`, `{"subscribe":{}}`,
		`{"subscribe":{"posts":["\ud83d\ude00"]}}`, `{"subscribe":[[[[`, "{\"subscribe\":{\"posts\":[\"\xff\"]}}", `{"subscribe":{"posts":["1"],}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseMessage(text, 5)
		if err != nil {
			if !errors.Is(err, like.ErrInvalid) {
				t.Errorf("error %v", err)
			}
			return
		}
		if len(m.subscribe)+len(m.unsubscribe) == 0 || max(len(m.subscribe), len(m.unsubscribe)) > 5 || !json.Valid(text) {
			t.Errorf("accepted %q as %+v", text, m)
		}
		for _, item := range append(m.subscribe, m.unsubscribe...) {
			if err := item.Validate(); err != nil {
				t.Errorf("accepted %q: %v", text, err)
			}
		}
	})
}

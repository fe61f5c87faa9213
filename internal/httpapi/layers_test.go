package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"likewise/internal/like"
)

func TestRequestID(t *testing.T) {
	once(t, func(s *service) {
		for id, kept := range map[string]bool{
			"a": true, "Req-1_2.3:4": true, strings.Repeat("x", 64): true,
			"": false, strings.Repeat("x", 65): false, "a b": false, "a\nb": false, "é": false, `"`: false, "<x>": false,
		} {
			got := s.do(call{method: http.MethodGet, target: "/v1/posts/1/like", header: http.Header{"X-Request-Id": {id}}}).Header().Get("X-Request-Id")
			if (got == id) != kept || got == "" {
				t.Errorf("%q: got %q", id, got)
			}
		}
		two := http.Header{"X-Request-Id": {"a", "b"}}
		if got := s.do(call{method: http.MethodGet, target: "/v1/posts/1/like", header: two}).Header().Get("X-Request-Id"); got == "a" || got == "b" {
			t.Errorf("one of two ids was taken: %q", got)
		}
		s.do(call{method: http.MethodGet, target: "/nowhere", header: http.Header{"X-Request-Id": {"abc"}}}).problem(404, "not_found")
	})
}

func TestCORS(t *testing.T) {
	const page = "https://app.example"
	preflight := func(origin string) call {
		return call{method: http.MethodOptions, target: "/v1/posts/1/like", header: http.Header{
			"Origin": {origin}, "Access-Control-Request-Method": {"PUT"}, "Access-Control-Request-Headers": {"authorization"},
		}}
	}
	once(t, func(s *service) {
		h := s.do(preflight(page)).want(204, "").Header()
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin": page, "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, DELETE",
			"Access-Control-Allow-Headers": "Authorization, Content-Type, X-Request-Id", "Access-Control-Max-Age": "600",
			"Access-Control-Allow-Credentials": "", "Vary": "Authorization, Origin",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %q, want %q", name, h.Get(name), want)
			}
		}
		for _, c := range append(everyRoute(tokenOf("u1")), everyRoute("bad")...) {
			c.header = http.Header{"Origin": {page}}
			h := s.do(c).Header()
			if h.Get("Access-Control-Allow-Origin") != page || !strings.Contains(h.Get("Access-Control-Expose-Headers"), "Retry-After") {
				t.Errorf("%s %s: %v", c.method, c.target, h)
			}
		}
		for _, origin := range []string{"https://evil.example", "https://app.example.evil", "http://app.example", "null", "HTTPS://APP.EXAMPLE", ""} {
			s.do(preflight(origin)).problem(405, "method_not_allowed")
			for _, c := range append(everyRoute(tokenOf("u1")), preflight(origin)) {
				c.header = http.Header{"Origin": {origin}}
				for name := range s.do(c).Header() {
					if strings.HasPrefix(name, "Access-Control") {
						t.Errorf("%q gets %s", origin, name)
					}
				}
			}
		}
	}, func(o *options) { o.cfg.CORSOrigins = []string{page} })
	once(t, func(s *service) {
		if got := s.do(preflight("https://any.example")).want(204, "").Header().Get("Access-Control-Allow-Origin"); got != "https://any.example" {
			t.Errorf("*: %q", got)
		}
	}, func(o *options) { o.cfg.CORSOrigins = []string{"*"} })
}

func TestSizesAndMedia(t *testing.T) {
	once(t, func(s *service) {
		const target = "/v1/likes/counts"
		good := `{"items":[{"collection":"posts","id":"1"}]}`
		fill := func(n int) string { return good + strings.Repeat(" ", n-len(good)) }
		s.post("", target, fill(4096)).want(200, "")
		s.post("", target, fill(4097)).problem(413, "body_too_large")
		for _, c := range everyRoute(tokenOf("u1"))[:4] {
			c.body = strings.Repeat(" ", 4097)
			s.do(c).problem(413, "body_too_large")
		}
		for media, ok := range map[string]bool{
			"application/json": true, "application/json; charset=utf-8": true, "application/json;charset=UTF-8": true,
			"Application/JSON": true, "": false, "text/plain": false, "application/json; charset=latin1": false,
			"application/problem+json": false, "application/x-www-form-urlencoded": false, "application/json, text/plain": false,
		} {
			w := s.raw(call{method: http.MethodPost, target: target, body: good, header: http.Header{"Content-Type": {media}}})
			if (w.Code == 200) != ok || !ok && w.Code != 415 {
				t.Errorf("%q: %d %s", media, w.Code, w.Body)
			}
		}
		s.do(call{method: http.MethodPost, target: target, body: good, header: http.Header{"Content-Encoding": {"gzip"}}}).
			problem(415, "unsupported_media_type")
		long := "/v1/likes/counts?posts=1,"
		long += strings.Repeat("x", 100-len(long))
		s.get("", long).want(200, "")
		s.get("", long+"x").problem(414, "uri_too_long")
	}, func(o *options) { o.cfg.MaxBodyBytes, o.cfg.MaxURLBytes = 4096, 100 })
}

func TestMetricsNameRoutesOnly(t *testing.T) {
	once(t, func(s *service) {
		s.put("u1", "posts/1")
		s.get("", "/v1/posts/2/like")
		s.get("", "/no/such/path")
		s.do(call{method: "BREW", target: "/v1/posts/1/like"})
		if n := s.metric("likewise_http_requests_total"); n != 4 {
			t.Errorf("%v requests, want 4", n)
		}
		if n := s.metric("likewise_http_in_flight_requests"); n != 0 {
			t.Errorf("%v in flight", n)
		}
		if n := s.metric("likewise_http_request_seconds"); n != 2 {
			t.Errorf("%v latencies, want 2", n)
		}
		families, err := s.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					if v := l.GetValue(); strings.Contains(v, "posts") || strings.Contains(v, "such") || v == "BREW" {
						t.Errorf("label %s=%q comes from a request", l.GetName(), v)
					}
				}
			}
		}
	})
}

func TestConfigValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"items": func(c *Config) { c.CountsMaxItems = 101 }, "friends": func(c *Config) { c.FriendsMax = 0 },
		"lookups": func(c *Config) { c.FriendsMaxLookups = 100_001 },
		"page":    func(c *Config) { c.PageMax = 101 }, "default": func(c *Config) { c.PageDefault = 0 },
		"batch": func(c *Config) { c.BatchMaxCommands = 1001 }, "url": func(c *Config) { c.MaxURLBytes = 0 },
		"body": func(c *Config) { c.MaxBodyBytes = 0 }, "body time": func(c *Config) { c.BodyTimeout = 0 },
		"time": func(c *Config) { c.RequestTimeout = 0 },
	} {
		cfg := DefaultConfig()
		spoil(&cfg)
		if _, err := New(cfg, Deps{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// pipes is a listener whose connections are in memory, so that their deadlines pass
// in virtual time.
type pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialled:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// overPipes serves the public API until the test ends, and returns what sends a
// request on a connection of its own.
func (s *service) overPipes() (exchange func(request string) *http.Response) {
	l := &pipes{dialled: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: s.public}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })
	s.Cleanup(func() {
		server.Close()
		wg.Wait()
		time.Sleep(time.Second) // net/http lingers after a body that it did not read
	})
	return func(request string) *http.Response {
		s.Helper()
		conn, theirs := net.Pipe()
		s.Cleanup(func() { conn.Close() })
		l.dialled <- theirs
		fmt.Fprint(conn, request)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			s.Fatalf("%.60q: %v", request, err)
		}
		return res
	}
}

// TestOverTheWire is about what only a real connection shows.
func TestOverTheWire(t *testing.T) {
	once(t, func(s *service) {
		exchange := s.overPipes()
		auth := "Host: x\r\nAuthorization: Bearer " + tokenOf("u1") + "\r\n"
		for request, status := range map[string]int{
			"PUT /v1//posts/1/like HTTP/1.1\r\n" + auth + "\r\n":                                                              400,
			"PUT /v1/posts/a%2Fb/like HTTP/1.1\r\n" + auth + "\r\n":                                                           200,
			"PUT /v1/posts/1/../2/like HTTP/1.1\r\n" + auth + "\r\n":                                                          400,
			"PUT http://y/v1/posts/1/like HTTP/1.1\r\n" + auth + "\r\n":                                                       200,
			"CONNECT y:443 HTTP/1.1\r\nHost: y:443\r\n\r\n":                                                                   400,
			"GET * HTTP/1.1\r\nHost: x\r\n\r\n":                                                                               400,
			"PUT /v1/posts/1/like HTTP/1.1\r\n" + auth + "Content-Length: 2\r\n\r\n{}":                                        415,
			"POST /v1/likes/counts HTTP/1.1\r\n" + auth + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{":    408,
			"POST /v1/likes/counts HTTP/1.1\r\n" + auth + "Content-Type: application/json\r\nContent-Length: 2000000\r\n\r\n": 413,
		} {
			res := exchange(request)
			if res.StatusCode != status || status >= 400 && !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
				t.Errorf("%.60q: %d %s, want %d", request, res.StatusCode, res.Header.Get("Content-Type"), status)
			}
			res.Body.Close()
		}
		if got, err := s.ledger.Liked(t.Context(), "u1", []like.Item{{Collection: "posts", ID: "a/b"}}); err != nil || !got[0].Liked {
			t.Errorf("posts/a/b: %v, %v", got, err)
		}
	})
}

// TestBodyDeadlineEndsWithTheBody serves a request for longer than its body may
// take to arrive.
func TestBodyDeadlineEndsWithTheBody(t *testing.T) {
	const patience = time.Second
	once(t, func(s *service) {
		s.faults.slow = func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-time.After(5 * patience):
			}
		}
		res := s.overPipes()("POST /v1/likes:batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + backend + "\r\n" +
			"Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(oneCommand)) + "\r\n\r\n" + oneCommand)
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%d %s %v", res.StatusCode, body, err)
		}
	}, func(o *options) { o.cfg.BodyTimeout = patience })
}

func TestShort(t *testing.T) {
	if got := short(strings.Repeat("é", 30)); len(got) > 43 || !slices.Contains([]rune(got), '…') {
		t.Error(got)
	}
}

package httpapi

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"

	"likewise/internal/like"
)

// watching is a stream under way.
type watching struct {
	*httptest.ResponseRecorder
	leave func() // ends it and waits for that
}

// watch opens a stream past the check against the document, which has no end either.
func (s *service) watch(token, target string) watching {
	ctx, cancel := context.WithCancel(s.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	var wg sync.WaitGroup
	wg.Go(func() { s.public.ServeHTTP(w, r) })
	synctest.Wait()
	return watching{w, func() {
		cancel()
		wg.Wait()
	}}
}

func TestStream(t *testing.T) {
	inBothModes(t, func(s *service) {
		s.put("u1", "posts/1").want(200, "")
		s.settle()
		w := s.watch("", "/v1/likes/stream?posts=1,2&games=a%2Cb")
		s.put("u2", "posts/1").want(200, "")
		s.settle()
		w.leave()
		text := w.Body.String()
		for _, want := range []string{
			`{"collection":"posts","id":"1","count":1,"display":"1","version":"`,
			`{"collection":"posts","id":"1","count":2,"display":"2","version":"`,
			`{"collection":"games","id":"b","count":0,"display":"0","version":"0"}`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
		if kind := w.Header().Get("Content-Type"); kind != "text/event-stream; charset=utf-8" || w.Code != 200 {
			t.Errorf("%d %s", w.Code, kind)
		}
	})
}

func TestStreamsAreFew(t *testing.T) {
	once(t, func(s *service) {
		for range 5 {
			defer s.watch(tokenOf("u1"), "/v1/likes/stream?posts=1").leave()
		}
		a := s.get(tokenOf("u1"), "/v1/likes/stream?posts=1")
		a.problem(429, "too_many_streams")
		if n, err := strconv.Atoi(a.Header().Get("Retry-After")); err != nil || n < 1 {
			t.Errorf("Retry-After %q", a.Header().Get("Retry-After"))
		}
		other := s.watch(tokenOf("u2"), "/v1/likes/stream?posts=1")
		other.leave()
		if other.Code != 200 {
			t.Errorf("another user: %d", other.Code)
		}
	})
}

func TestStreamRefusals(t *testing.T) {
	once(t, func(s *service) {
		ids := make([]string, 51)
		for i := range ids {
			ids[i] = strconv.Itoa(i)
		}
		many := "/v1/likes/stream?posts=" + strings.Join(ids, ",")
		for _, tt := range []struct {
			c      call
			status int
			code   string
		}{
			{call{target: "/v1/likes/stream"}, 400, "invalid_query"},
			{call{target: "/v1/likes/stream?posts="}, 400, "invalid_request"},
			{call{target: "/v1/likes/stream?Posts=1"}, 400, "invalid_request"},
			{call{target: many}, 400, "too_many"},
			{call{target: "/v1/likes/stream?access_token=x&posts=1"}, 401, "invalid_token"},
			{call{target: "/v1/likes/stream?posts=1", token: "bad"}, 401, "invalid_token"},
			{call{target: "/v1/likes/stream?posts=1", body: `{"x":1}`}, 400, "invalid_body"},
			{call{target: "/v1/likes/ws"}, 400, "invalid_request"},
			{call{target: "/v1/likes/ws?posts=1"}, 400, "invalid_query"},
			{call{target: "/v1/likes/ws", token: "bad"}, 401, "invalid_token"},
			{call{target: "/v1/likes/ws", header: http.Header{"Origin": {"https://evil.example"}}}, 403, "origin_not_allowed"},
			{call{method: http.MethodPost, target: "/v1/likes/stream"}, 405, "method_not_allowed"},
		} {
			if tt.c.method == "" {
				tt.c.method = http.MethodGet
			}
			s.do(tt.c).problem(tt.status, tt.code)
		}
		head := s.do(call{method: http.MethodHead, target: "/v1/likes/stream?posts=1"})
		if head.Code != 200 || head.Header().Get("Content-Type") != "text/event-stream; charset=utf-8" {
			t.Errorf("HEAD: %d %v", head.Code, head.Header())
		}
		s.faults.set(like.ErrUnavailable)
		s.get("", "/v1/likes/stream?posts=9").problem(503, "unavailable")
	})
	once(t, func(s *service) {
		s.get("", "/v1/likes/stream?posts=1").problem(401, "missing_token")
		s.get("", "/v1/likes/ws").problem(401, "missing_token")
		w := s.watch(tokenOf("u1"), "/v1/likes/stream?posts=1")
		w.leave()
		if w.Code != 200 {
			t.Errorf("with a token: %d", w.Code)
		}
	}, func(o *options) { o.cfg.AnonymousReads = false })
}

// TestLiveOnSockets goes through every layer of the API with a connection that is
// taken over.
func TestLiveOnSockets(t *testing.T) {
	const page = "https://app.example"
	s := newService(t, func(o *options) { o.cfg.CORSOrigins = []string{page} })
	server := httptest.NewServer(s.public)
	defer server.Close()
	s.put("u1", "posts/1").want(200, "")

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/likes/stream?posts=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", page)
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": page, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"X-Accel-Buffering": "no", "Vary": "Authorization, Origin", "Content-Type": "text/event-stream; charset=utf-8",
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if answer.Header.Get("X-Request-Id") == "" {
		t.Error("no request id")
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"id":"1","count":1,`) {
	}
	if lines.Err() != nil || lines.Text() == "" {
		t.Errorf("no count: %v", lines.Err())
	}

	c, _, err := websocket.Dial(t.Context(), server.URL+"/v1/likes/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"subscribe":{"posts":["1"]}}`)); err != nil {
		t.Fatal(err)
	}
	_, text, err := c.Read(t.Context())
	if want := `{"type":"counts","counts":[{"collection":"posts","id":"1","count":1,"display":"1","version":"`; err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("%v %s", err, text)
	}
}

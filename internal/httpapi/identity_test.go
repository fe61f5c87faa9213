package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"likewise/internal/auth"
	"likewise/internal/like"
	"likewise/internal/limit"
)

// everyRoute is one good request of each public route.
func everyRoute(token string) []call {
	return []call{
		{method: http.MethodPut, target: "/v1/posts/1/like", token: token},
		{method: http.MethodDelete, target: "/v1/posts/1/like", token: token},
		{method: http.MethodGet, target: "/v1/posts/1/like", token: token},
		{method: http.MethodGet, target: "/v1/posts/1/likers", token: token},
		{method: http.MethodPost, target: "/v1/posts/1/likers/among", token: token, body: `{"users":["u1"]}`},
		{method: http.MethodGet, target: "/v1/likes/counts?posts=1", token: token},
		{method: http.MethodPost, target: "/v1/likes/counts", token: token, body: `{"items":[{"collection":"posts","id":"1"}]}`},
		{method: http.MethodGet, target: "/v1/me/likes", token: token},
		{method: http.MethodPost, target: "/v1/likes:batch", token: token, body: oneCommand},
		{method: http.MethodGet, target: "/v1/openapi.json", token: token},
	}
}

func TestWrongTokenIsNeverAnonymous(t *testing.T) {
	once(t, func(s *service) {
		headers := map[string][]string{
			"refused": {"Bearer bad"}, "alone": {"Bearer"}, "empty": {""}, "no scheme": {tokenOf("u1")},
			"basic": {"Basic dTpw"}, "two": {"Bearer " + tokenOf("u1"), "Bearer " + tokenOf("u2")},
		}
		for name, values := range headers {
			for _, c := range everyRoute("") {
				c.header = http.Header{"Authorization": values}
				a := s.do(c)
				a.problem(401, "invalid_token")
				if a.Header().Get("WWW-Authenticate") != `Bearer realm="likewise", error="invalid_token"` {
					t.Errorf("%s: WWW-Authenticate %q", name, a.Header().Get("WWW-Authenticate"))
				}
			}
		}
		for _, c := range everyRoute("down") {
			s.do(c).problem(503, "unavailable")
		}
		for _, c := range everyRoute(strings.Repeat("x", auth.MaxTokenBytes+1)) {
			s.do(c).problem(431, "headers_too_large")
		}
		s.get("", "/v1/posts/1/like").want(200, `{"liked":false,"count":0}`)
	})
}

func TestNoToken(t *testing.T) {
	needs := map[string]bool{"PUT /v1/posts/1/like": true, "DELETE /v1/posts/1/like": true, "GET /v1/me/likes": true, "POST /v1/likes:batch": true, "POST /v1/posts/1/likers/among": true}
	for _, anonymous := range []bool{true, false} {
		t.Run(fmt.Sprint(anonymous), func(t *testing.T) {
			once(t, func(s *service) {
				for _, c := range everyRoute("") {
					a := s.do(c)
					if needs[c.method+" "+c.target] || !anonymous && c.target != "/v1/openapi.json" {
						a.problem(401, "missing_token")
						if a.Header().Get("WWW-Authenticate") != `Bearer realm="likewise"` {
							t.Errorf("WWW-Authenticate %q", a.Header().Get("WWW-Authenticate"))
						}
						continue
					}
					a.want(200, "")
				}
			}, func(o *options) { o.cfg.AnonymousReads = anonymous })
		})
	}
}

// TestNamedUserIsRefused is scenario B37, over every route.
func TestNamedUserIsRefused(t *testing.T) {
	once(t, func(s *service) {
		s.put("u2", "posts/2")
		for _, c := range everyRoute(tokenOf("u1", auth.ScopeWriteAny)) {
			for _, name := range userHeaders {
				c.header = http.Header{name: {"u2"}}
				s.do(c).problem(400, "user_not_accepted")
			}
		}
		for _, c := range []call{{method: http.MethodPut, target: "/v1/posts/1/like"}, {method: http.MethodDelete, target: "/v1/posts/2/like"}} {
			c.token = tokenOf("u1")
			for _, q := range []string{"?user=u2", "?user_id=u2", "?x", "?liked=true"} {
				with := c
				with.target += q
				s.do(with).problem(400, "invalid_query")
			}
			for _, body := range []string{
				`{"user_id":"u2"}`, `{"user":"u2"}`, `{"userName":"u2"}`, `[]`, `"u2"`, `null`, `{} {}`, `{}x`, `x`,
				strings.Repeat(" ", 10) + `{"user":"u2"}`,
			} {
				c.body = body
				s.do(c).problem(400, "invalid_body")
			}
		}
		var page likersAnswer
		s.get("", "/v1/posts/1/likers").decodeInto(&page)
		if len(page.Likers) != 0 {
			t.Errorf("posts/1: %+v", page)
		}
		s.get(tokenOf("u2"), "/v1/posts/2/like").want(200, `{"liked":true,"count":1}`)
		for _, body := range []string{"{}", " { } ", "\n"} {
			s.do(call{method: http.MethodPut, target: "/v1/posts/1/like", token: tokenOf("u1"), body: body}).want(200, "")
		}
	})
}

// TestUsersAreIsolated runs two users over every route: nothing that one does or
// reads shows the other's state as their own.
func TestUsersAreIsolated(t *testing.T) {
	inBothModes(t, func(s *service) {
		s.put("u1", "posts/1")
		s.put("u2", "posts/2")
		s.settle()
		for range 3 { // u1 fills the cache, u2 reads it, and the other way round
			for user, liked := range map[string][]bool{"u1": {true, false}, "u2": {false, true}, "u3": {false, false}} {
				var page countsAnswer
				s.get(tokenOf(user), "/v1/likes/counts?posts=1,2").decodeInto(&page)
				s.post(tokenOf(user), "/v1/likes/counts", `{"items":[{"collection":"posts","id":"1"},{"collection":"posts","id":"2"}]}`).decodeInto(&page)
				for i, e := range page.Counts {
					if *e.LikedByMe != liked[i] || e.Count != 1 {
						t.Errorf("%s posts/%s: %+v", user, e.ID, e)
					}
					s.get(tokenOf(user), "/v1/posts/"+e.ID+"/like").want(200, fmt.Sprintf(`{"liked":%v,"count":1}`, liked[i]))
				}
				var mine struct{ Likes []struct{ ID string } }
				s.get(tokenOf(user), "/v1/me/likes").decodeInto(&mine)
				if got, want := len(mine.Likes), map[bool]int{true: 1}[liked[0] || liked[1]]; got != want {
					t.Errorf("%s likes %+v", user, mine)
				}
			}
			s.delete("u3", "posts/1").want(200, `{"liked":false,"count":1}`)
		}
	})
}

func TestUserLimit(t *testing.T) {
	l := &fakeLimit{d: limit.Decision{OK: true, Limit: 10, Window: 2, Remaining: 9, Reset: 1}}
	once(t, func(s *service) {
		a := s.put("u1", "posts/1")
		if got := a.Header().Get("RateLimit"); a.Code != 200 || got != `"user";r=9;t=1` {
			t.Errorf("%d, RateLimit %q", a.Code, got)
		}
		l.d = limit.Decision{Limit: 10, Window: 2, RetryAfter: 1, Reset: 2}
		for _, a := range []answer{s.put("u1", "posts/2"), s.delete("u1", "posts/1")} {
			a.problem(429, "rate_limited")
			if h := a.Header(); h.Get("Retry-After") != "1" || h.Get("RateLimit-Policy") != `"user";q=10;w=2` {
				t.Errorf("%v", h)
			}
		}
		for _, c := range everyRoute(tokenOf("u1", auth.ScopeWriteAny))[2:] {
			s.do(c).want(200, "") // reads and batches are not bound by it
		}
		s.get(tokenOf("u1"), "/v1/likes/counts?posts=1,2").want(200, `{"counts":[`+
			`{"collection":"posts","id":"1","count":1,"display":"1","liked_by_me":true},`+
			`{"collection":"posts","id":"2","count":0,"display":"0","liked_by_me":false}]}`)
		l.err = like.ErrUnavailable
		s.put("u1", "posts/2").want(200, "")
		if slices.ContainsFunc(l.keys, func(k string) bool { return k != "u1" }) {
			t.Errorf("keys %v", l.keys)
		}
	}, func(o *options) { o.deps.UserLimit = l })
}

func TestReadLimit(t *testing.T) {
	l := &fakeLimit{d: limit.Decision{OK: true, Limit: 200, Window: 2, Remaining: 199, Reset: 1}}
	once(t, func(s *service) {
		if got := s.get(tokenOf("u1"), "/v1/me/likes").want(200, "").Header().Get("RateLimit"); got != `"reads";r=199;t=1` {
			t.Errorf("RateLimit %q", got)
		}
		l.d = limit.Decision{Limit: 200, Window: 2, RetryAfter: 1, Reset: 2}
		for _, c := range everyRoute(tokenOf("u1")) {
			switch {
			case c.target == "/v1/likes:batch":
				s.do(c).problem(403, "missing_scope")
			case c.target == "/v1/openapi.json" || c.method == http.MethodPut || c.method == http.MethodDelete:
				s.do(c).want(200, "") // documents have no limit, likes have one of their own
			default:
				a := s.do(c)
				a.problem(429, "rate_limited")
				if h := a.Header(); h.Get("Retry-After") != "1" || h.Get("RateLimit-Policy") != `"reads";q=200;w=2` {
					t.Errorf("%v", h)
				}
			}
		}
		for _, c := range everyRoute(tokenOf("b", auth.ScopeWriteAny)) {
			s.do(c).want(200, "") // a trusted backend
		}
		s.get("", "/v1/posts/1/like").want(200, "")
		if slices.ContainsFunc(l.keys, func(k string) bool { return k != "u1" }) {
			t.Errorf("keys %v", l.keys)
		}
	}, func(o *options) { o.deps.ReadLimit = l })
}

func TestAddressLimit(t *testing.T) {
	l := &fakeLimit{d: limit.Decision{Limit: 10, Window: 2, RetryAfter: 3, Reset: 2}}
	once(t, func(s *service) {
		forged := http.Header{"X-Forwarded-For": {"203.0.113.9"}, "X-Real-Ip": {"203.0.113.9"}}
		for _, token := range []string{"", "bad"} {
			for _, c := range everyRoute(token) {
				if c.header = forged; c.target == "/v1/openapi.json" && token == "" {
					continue
				}
				a := s.do(c)
				a.problem(429, "rate_limited")
				if a.Header().Get("Retry-After") != "3" {
					t.Errorf("Retry-After %q", a.Header().Get("Retry-After"))
				}
			}
		}
		s.get("", "/v1/openapi.json").want(200, "")
		s.put("u1", "posts/1").want(200, "")
		if slices.ContainsFunc(l.keys, func(k string) bool { return k != "192.0.2.1" }) {
			t.Errorf("keys %v, want the peer's address", l.keys)
		}
		l.err = errors.New("down")
		s.get("", "/v1/posts/1/like").want(200, "")
	}, func(o *options) { o.deps.AddressLimit = l })
}

// countingAuth is fakeAuth that remembers nothing and counts what it verifies.
type countingAuth struct {
	fakeAuth
	verified atomic.Int64
}

func (*countingAuth) Known(string) (auth.Identity, bool) { return auth.Identity{}, false }

func (a *countingAuth) Verify(ctx context.Context, token string) (auth.Identity, error) {
	a.verified.Add(1)
	return a.fakeAuth.Verify(ctx, token)
}

// TestFloodOfWrongTokens: an address pays for the first wrong tokens, and costs no
// signature after that, whatever it asks for.
func TestFloodOfWrongTokens(t *testing.T) {
	const burst = 10
	verifier := &countingAuth{}
	once(t, func(s *service) {
		for range burst {
			s.put("u1", "posts/1").want(200, "") // a good token costs the address nothing
		}
		verifier.verified.Store(0)
		refused := 0
		for range 20 {
			for _, c := range everyRoute("bad") {
				if s.do(c).Code == http.StatusTooManyRequests {
					refused++
				}
			}
		}
		if n := verifier.verified.Load(); n != burst || refused != 20*len(everyRoute(""))-burst {
			t.Errorf("%d tokens verified, %d requests refused; want %d verified and the others refused", n, refused, burst)
		}
		time.Sleep(time.Second)
		s.put("u1", "posts/1").want(200, "")
	}, func(o *options) {
		addresses, err := limit.NewLocal(limit.Config{Rate: 1, Burst: burst, MaxKeys: 1 << 10})
		if err != nil {
			t.Fatal(err)
		}
		o.deps.Auth, o.deps.AddressLimit = verifier, addresses
	})
}

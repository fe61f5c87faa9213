package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const oneCommand = `{"commands":[{"op":"like","collection":"posts","id":"1","user":"u1"}]}`

func TestLikeAndUnlikeAreIdempotent(t *testing.T) {
	inBothModes(t, func(s *service) {
		for range 3 {
			s.put("u1", "posts/1").want(200, `{"liked":true,"count":1}`)
		}
		s.delete("u2", "posts/1").want(200, "")
		s.settle()
		s.put("u2", "posts/1").want(200, `{"liked":true,"count":2}`)
		s.settle()
		for range 3 {
			s.delete("u1", "posts/1").want(200, `{"liked":false,"count":1}`)
		}
		s.settle()
		s.get("", "/v1/posts/1/like").want(200, `{"liked":false,"count":1}`)
		s.get(tokenOf("u2"), "/v1/posts/1/like").want(200, `{"liked":true,"count":1}`)
		s.get(tokenOf("u1"), "/v1/posts/1/like").want(200, `{"liked":false,"count":1}`)
	})
}

func TestOwnLikeIsVisibleAtOnce(t *testing.T) {
	inBothModes(t, func(s *service) {
		s.get(tokenOf("u1"), "/v1/likes/counts?posts=1")
		s.put("u1", "posts/1").want(200, `{"liked":true,"count":1}`)
		s.get(tokenOf("u1"), "/v1/posts/1/like").want(200, `{"liked":true,"count":1}`)
		s.get(tokenOf("u1"), "/v1/likes/counts?posts=1").want(200,
			`{"counts":[{"collection":"posts","id":"1","count":1,"display":"1","liked_by_me":true}]}`)
		s.delete("u1", "posts/1").want(200, `{"liked":false,"count":0}`)
		s.get(tokenOf("u1"), "/v1/posts/1/like").want(200, "")
		s.settle()
		s.get(tokenOf("u1"), "/v1/posts/1/like").want(200, `{"liked":false,"count":0}`)
	})
}

// TestOthersSeeAnAcknowledgedTotal is about a node whose feed is late: what an
// acknowledgement says is not forgotten.
func TestOthersSeeAnAcknowledgedTotal(t *testing.T) {
	h := newFuzzed(t)
	want := func(count string) {
		t.Helper()
		if w := h.send(t, "GET", "/v1/likes/counts?posts=1", ""); !strings.Contains(w.Body.String(), `"count":`+count) {
			t.Errorf("%s, want %s", w.Body, count)
		}
	}
	want("0")
	h.send(t, "PUT", "/v1/posts/1/like", "")
	want("1")
	h.send(t, "POST", "/v1/likes:batch", commandsOf(lineOf("like", "1", "u2"), lineOf("like", "1", "u3")))
	want("3")
}

// TestNamesAreOpaque is about names that other encodings mix up.
func TestNamesAreOpaque(t *testing.T) {
	inBothModes(t, func(s *service) {
		ids := []string{
			"a:b", "a|b", "a#b", "a{b}", "a;b", "a~b", "a b", "a+b", "a%2Fb", "a/b", "a//b", "a/../b", "a?b", "a&b=c", "a,b",
			"é", "e\u0301", "😀", "\uFFFD", `a"b\c`, "<script>", "...", "%", "%25", "9007199254740993", "007", "A", "a",
		}
		for i, id := range ids {
			user := "user " + id
			s.do(call{method: http.MethodPut, target: "/v1/posts/" + url.PathEscape(id) + "/like", token: tokenOf(user)}).
				want(200, `{"liked":true,"count":1}`)
			s.settle()
			s.get(tokenOf(user), "/v1/posts/"+url.PathEscape(id)+"/like").want(200, `{"liked":true,"count":1}`)
			var page struct {
				Likes []struct{ Collection, ID string }
			}
			s.get(tokenOf(user), "/v1/me/likes").decodeInto(&page)
			if len(page.Likes) != 1 || page.Likes[0].ID != id || page.Likes[0].Collection != "posts" {
				t.Errorf("%d %q: %+v", i, id, page)
			}
		}
	})
}

func TestNamesThatCannotBe(t *testing.T) {
	long := fmt.Sprintf("%0129d", 0)
	once(t, func(s *service) {
		for _, path := range []string{
			"Posts/1", "1posts/1", "p%C3%B6sts/1", "p%2Fo/1", "posts/" + long, "posts/%2E", "posts/%2E%2E",
			fmt.Sprintf("%033d/1", 0), "p.q/1", "posts/" + url.PathEscape(long),
		} {
			for _, target := range []string{path + "/like", path + "/likers"} {
				s.get("", "/v1/"+target).problem(400, "invalid_request")
			}
			s.put("u1", path).problem(400, "invalid_request")
			s.delete("u1", path).problem(400, "invalid_request")
			s.post(tokenOf("u1"), "/v1/"+path+"/likers/among", `{"users":[]}`).problem(400, "invalid_request")
		}
		s.put("u1", "posts/"+long[1:]).want(200, "")
		s.put("u1", fmt.Sprintf("p%031d/1", 0)).want(200, "")
	})
}

// TestSloppyPathsAreNotRedirected is scenario B29 over every route and method.
func TestSloppyPathsAreNotRedirected(t *testing.T) {
	once(t, func(s *service) {
		for _, path := range []string{
			"/v1//posts/1/like", "//v1/posts/1/like", "/v1/posts//like", "/v1/posts/1/like/", "/v1/posts/./like",
			"/v1/posts/1/../2/like", "/v1/posts/../1/like", "/./v1/posts/1/like", "/v1/posts/1//likers", "/v1/likes//counts",
			"/v1/likes/counts/", "/v1/me/likes/", "/v1/likes:batch/", "/v1/", "/v1/posts/%FF/like", "/v1/posts/a%00/like",
			"/v1/posts/a%0A/like", "/v1/posts/%C2%80/like", "/v1/%FF/1/likers", "/v1/me/%7F",
		} {
			for _, method := range []string{"PUT", "DELETE", "GET", "POST", "HEAD", "OPTIONS", "PATCH"} {
				a := s.do(call{method: method, target: path, token: tokenOf("u1")})
				if a.Code != 400 || a.Header().Get("Location") != "" {
					t.Errorf("%s %s: %d", method, path, a.Code)
				}
			}
			s.get("", path).problem(400, "invalid_path")
		}
		s.get("", "/v1/posts/1/like").want(200, `{"liked":false,"count":0}`)
		s.get("", "/v1/posts/2/like").want(200, `{"liked":false,"count":0}`)
	})
}

func TestNothingElseIsServed(t *testing.T) {
	once(t, func(s *service) {
		for _, path := range []string{
			"/", "/v1", "/v2/posts/1/like", "/v1/posts/1", "/v1/posts/1/likes", "/metrics", "/debug/pprof", "/livez",
			"/admin/v1/export", "/v1/posts/1/like/x", "/v1/me",
		} {
			s.get(tokenOf("u1"), path).problem(404, "not_found")
			s.do(call{method: "PUT", target: path}).problem(404, "not_found")
		}
		for target, allow := range map[string]string{
			"/v1/posts/1/like":         "DELETE, GET, HEAD, PUT",
			"/v1/posts/1/likers":       "GET, HEAD",
			"/v1/posts/1/likers/among": "POST",
			"/v1/likes/counts":         "GET, HEAD, POST",
			"/v1/me/likes":             "GET, HEAD",
			"/v1/likes:batch":          "POST",
		} {
			for _, method := range []string{"PATCH", "TRACE", "OPTIONS", "FOO"} {
				a := s.do(call{method: method, target: target, token: tokenOf("u1")})
				a.problem(405, "method_not_allowed")
				if got := a.Header().Get("Allow"); got != allow {
					t.Errorf("%s %s: Allow %q, want %q", method, target, got, allow)
				}
			}
		}
		a := s.do(call{method: "HEAD", target: "/v1/likes/counts?posts=1"})
		if a.Code != 200 {
			t.Errorf("HEAD: %d", a.Code)
		}
	})
}

package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/like"
)

func TestCountsPage(t *testing.T) {
	inBothModes(t, func(s *service) {
		for i := range 3 {
			s.put(fmt.Sprintf("u%d", i), "posts/2")
		}
		s.put("u1", "games/7")
		s.settle()
		const anonymous = `{"counts":[` +
			`{"collection":"posts","id":"2","count":3,"display":"3"},` +
			`{"collection":"posts","id":"1","count":0,"display":"0"},` +
			`{"collection":"games","id":"7","count":1,"display":"1"},` +
			`{"collection":"posts","id":"2","count":3,"display":"3"}]}`
		mine := strings.NewReplacer(
			`"display":"3"`, `"display":"3","liked_by_me":true`, `"display":"0"`, `"display":"0","liked_by_me":false`,
			`"display":"1"`, `"display":"1","liked_by_me":true`).Replace(anonymous)
		const target = "/v1/likes/counts?posts=2,1&games=7&posts=2"
		const body = `{"items":[{"collection":"posts","id":"2"},{"id":"1","collection":"posts"},` +
			`{"collection":"games","id":"7"},{"collection":"posts","id":"2"}]}`
		for range 2 { // from the ledger, then from the cache
			s.get("", target).want(200, anonymous)
			s.get(tokenOf("u1"), target).want(200, mine)
			s.post("", "/v1/likes/counts", body).want(200, anonymous)
			s.post(tokenOf("u1"), "/v1/likes/counts", body).want(200, mine)
			s.get(tokenOf("u9"), target).want(200, strings.ReplaceAll(mine, "true", "false"))
		}
	})
}

func TestCountsQueryIsDecodedThenSplit(t *testing.T) {
	once(t, func(s *service) {
		for query, want := range map[string][]string{
			"posts=1%2C2,3":    {"posts/1", "posts/2", "posts/3"},
			"p%6Fsts=%61":      {"posts/a"},
			"posts=a+b":        {"posts/a b"},
			"posts=a%2Bb":      {"posts/a+b"},
			"posts=%252F":      {"posts/%2F"},
			"posts=a/b":        {"posts/a/b"},
			"posts=a=b":        {"posts/a=b"},
			"user=u1&limit=10": {"user/u1", "limit/10"},
		} {
			var page countsAnswer
			s.get("", "/v1/likes/counts?"+query).decodeInto(&page)
			var got []string
			for _, e := range page.Counts {
				got = append(got, e.Collection+"/"+e.ID)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s\n%s", query, d)
			}
		}
	})
}

func TestCountsQueryRefusals(t *testing.T) {
	id128 := strings.Repeat("x", 128)
	once(t, func(s *service) {
		for query, code := range map[string]string{
			"":                       "invalid_query",
			"posts=1;games=2":        "invalid_query",
			"posts=%zz":              "invalid_query",
			"posts=%":                "invalid_query",
			"posts=%FF":              "invalid_query",
			"posts=a%00":             "invalid_query",
			"posts=%C2%85":           "invalid_query",
			"=1":                     "invalid_query",
			"posts=1&":               "invalid_query",
			"&posts=1":               "invalid_query",
			"posts":                  "invalid_request",
			"posts=":                 "invalid_request",
			"posts=1,,2":             "invalid_request",
			"posts=1,":               "invalid_request",
			"posts=..":               "invalid_request",
			"Posts=1":                "invalid_request",
			"posts[]=1":              "invalid_request",
			"posts=" + id128 + "x":   "invalid_request",
			"posts=1" + ids(2, 101):  "too_many",
			"posts=1" + ids(2, 1000): "too_many",
		} {
			p := s.get(tokenOf("u1"), "/v1/likes/counts?"+query).problem(400, code)
			if code == "too_many" && !strings.Contains(p.Detail, "100") {
				t.Errorf("the detail does not name the limit: %q", p.Detail)
			}
		}
		for _, n := range []int{1, 2, 20, 50, 100} {
			var page countsAnswer
			s.get("", "/v1/likes/counts?posts=1"+ids(2, n)).decodeInto(&page)
			if len(page.Counts) != n {
				t.Errorf("%d entries for %d ids", len(page.Counts), n)
			}
		}
		s.get("", "/v1/likes/counts?posts="+id128).want(200, "")
		for _, name := range []string{"token", "access_token"} {
			s.get("", "/v1/likes/counts?posts=1&"+name+"="+tokenOf("u1")).problem(401, "invalid_token")
		}
	})
}

// ids returns ",from,…,to".
func ids(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, ",%d", i)
	}
	return b.String()
}

func TestCountsBodyRefusals(t *testing.T) {
	item := `{"collection":"posts","id":"1"}`
	many := func(n int) string { return `{"items":[` + strings.Repeat(item+",", n-1) + item + `]}` }
	users := func(n int) string {
		return `{"items":[` + item + `],"friends":[` + strings.Repeat(`"u",`, n-1) + `"u"]}`
	}
	once(t, func(s *service) {
		for body, code := range map[string]string{
			`{}`:                        "invalid_body",
			`{"items":[]}`:              "invalid_body",
			`{"friends":["u1"]}`:        "invalid_body",
			`{"items":[{}]}`:            "invalid_request",
			`{"items":[{"id":"1"}]}`:    "invalid_request",
			`{"items":["posts/1"]}`:     "invalid_body",
			`{"items":[` + item + `],}`: "invalid_body",
			`{"items":[{"collection":"posts","id":1}]}`: "invalid_body",
			`{"items":[` + item + `],"friends":[""]}`:   "invalid_request",
			`{"items":[` + item + `],"friends":null}`:   "invalid_body",
			`{"items":[` + item + `],"user":"u1"}`:      "invalid_body",
			many(101):                                   "too_many",
			users(1001):                                 "too_many",
		} {
			s.post(tokenOf("u1"), "/v1/likes/counts", body).problem(400, code)
		}
		s.post("", "/v1/likes/counts", many(100)).want(200, "")
		s.post("", "/v1/likes/counts", users(1000)).problem(401, "missing_token")
		s.post(tokenOf("u1"), "/v1/likes/counts", users(1000)).want(200, "")
		s.post("", "/v1/likes/counts?posts=1", many(1)).problem(400, "invalid_query")
		if p := s.post("", "/v1/likes/counts", `{"items":[`+item+`,{"collection":"X","id":"1"}]}`).
			problem(400, "invalid_request"); !strings.HasPrefix(p.Detail, "items[1]: ") {
			t.Errorf("the detail does not name the item: %q", p.Detail)
		}
	})
}

func TestFriends(t *testing.T) {
	inBothModes(t, func(s *service) {
		for _, user := range []string{"u1", "u2", "u3", "u4", "<u5>"} {
			s.put(user, "posts/1")
		}
		var page countsAnswer
		s.post(tokenOf("v"), "/v1/likes/counts", `{"items":[{"collection":"posts","id":"1"},{"collection":"posts","id":"2"}],`+
			`"friends":["x","<u5>","u3","u3","u1","y","u2"]}`).decodeInto(&page)
		want := []*friends{{Count: 4, Sample: []like.User{"<u5>", "u3", "u1"}}, {Count: 0, Sample: []like.User{}}}
		if d := cmp.Diff(want, []*friends{page.Counts[0].Friends, page.Counts[1].Friends}); d != "" {
			t.Error(d)
		}
		s.post(tokenOf("v"), "/v1/likes/counts", `{"items":[{"collection":"posts","id":"2"}],"friends":[]}`).want(200,
			`{"counts":[{"collection":"posts","id":"2","count":0,"display":"0","liked_by_me":false,"friends":{"count":0,"sample":[]}}]}`)
		s.post(tokenOf("u1"), "/v1/posts/1/likers/among", `{"users":["x","u2","u2","u1"]}`).want(200, `{"count":2,"users":["u2","u1"]}`)
		s.post(tokenOf("u1"), "/v1/posts/1/likers/among", `{"users":[]}`).want(200, `{"count":0,"users":[]}`)
	})
}

// TestFriendsLookups bounds the items times the friends of one question.
func TestFriendsLookups(t *testing.T) {
	once(t, func(s *service) {
		ask := func(items, users int) answer {
			return s.post(tokenOf("u1"), "/v1/likes/counts", `{"items":[`+
				strings.Repeat(`{"collection":"posts","id":"1"},`, items-1)+`{"collection":"posts","id":"1"}],"friends":["u"`+
				strings.Repeat(`,"u"`, users-1)+`]}`)
		}
		ask(3, 4).want(200, "")
		if p := ask(1, 13).problem(400, "too_many"); !strings.Contains(p.Detail, "12") {
			t.Errorf("detail %q does not name the limit", p.Detail)
		}
		ask(13, 1).problem(400, "too_many")
		s.post(tokenOf("u1"), "/v1/posts/1/likers/among", `{"users":["u"`+strings.Repeat(`,"u"`, 11)+`]}`).want(200, "")
		s.post(tokenOf("u1"), "/v1/posts/1/likers/among", `{"users":["u"`+strings.Repeat(`,"u"`, 12)+`]}`).problem(400, "too_many")
	}, func(o *options) { o.cfg.FriendsMaxLookups = 12 })
}

func TestAmongRefusals(t *testing.T) {
	once(t, func(s *service) {
		for body, code := range map[string]string{
			`{}`:             "invalid_body",
			`{"friends":[]}`: "invalid_body",
			`{"users":"u1"}`: "invalid_body",
			`{"users":[""]}`: "invalid_request",
			`{"users":[`:     "invalid_body",
			`{"users":["a"}`: "invalid_body",
			`{"users":[1]}`:  "invalid_body",
			`{"users":["` + strings.Repeat("x", 129) + `"]}`:           "invalid_request",
			`{"users":[` + strings.Repeat(`"u",`, 1000) + `"u"]}`:      "too_many",
			`{"users":["a"],"users":["b"]}`:                            "invalid_body",
			`{"users":["\u0000"]}`:                                     "invalid_request",
			`{"Users":["a"]}`:                                          "invalid_body",
			`{"users":["` + "\xff" + `"]}`:                             "invalid_body",
			`{"users":["\ud800"]}`:                                     "invalid_body",
			`{"users":["a"]} {}`:                                       "invalid_body",
			strings.Repeat("[", 10000):                                 "invalid_body",
			`{"users":` + strings.Repeat("[", 10000):                   "invalid_body",
			`{"users":[` + strings.Repeat(`"u",`, 999) + `"u"],"x":1}`: "invalid_body",
		} {
			s.post(tokenOf("u1"), "/v1/posts/1/likers/among", body).problem(400, code)
		}
	})
}

func TestStaleCountsSayHowOldTheyAre(t *testing.T) {
	once(t, func(s *service) {
		s.put("u1", "posts/1")
		s.get("", "/v1/likes/counts?posts=1").want(200, "")
		s.faults.set(like.ErrUnavailable)
		time.Sleep(20 * time.Second)
		var page countsAnswer
		s.get("", "/v1/likes/counts?posts=1").decodeInto(&page)
		if e := page.Counts[0]; e.Count != 1 || e.AgeMS < 20_000 || e.AgeMS > 30_000 {
			t.Errorf("%+v, want 1 and its age", e)
		}
		if body := s.get("", "/v1/posts/1/like").want(200, "").Body.String(); !strings.HasPrefix(body, `{"liked":false,"count":1,"age_ms":2`) {
			t.Errorf("%s, want the age here too", body)
		}
		s.get("", "/v1/likes/counts?posts=1,2").problem(503, "unavailable")
		s.get(tokenOf("u1"), "/v1/posts/2/like").problem(503, "unavailable")
		s.faults.set(nil)
		s.settle()
		s.get("", "/v1/likes/counts?posts=1")
		s.settle()
		s.get("", "/v1/likes/counts?posts=1").want(200, `{"counts":[{"collection":"posts","id":"1","count":1,"display":"1"}]}`)
	})
}

func TestCaching(t *testing.T) {
	once(t, func(s *service) {
		const private = "private, no-store"
		for _, tt := range []struct {
			call
			want string
		}{
			{call{method: http.MethodGet, target: "/v1/likes/counts?posts=1"}, "public, max-age=1"},
			{call{method: http.MethodGet, target: "/v1/likes/counts?posts=1", token: tokenOf("u1")}, private},
			{call{method: http.MethodGet, target: "/v1/likes/counts?posts=%"}, private},
			{call{method: http.MethodGet, target: "/v1/posts/1/like"}, private},
			{call{method: http.MethodGet, target: "/v1/posts/1/likers"}, private},
			{call{method: http.MethodGet, target: "/v1/me/likes", token: tokenOf("u1")}, private},
			{call{method: http.MethodPut, target: "/v1/posts/1/like", token: tokenOf("u1")}, private},
			{call{method: http.MethodGet, target: "/v1/openapi.json"}, "public, max-age=300"},
		} {
			h := s.do(tt.call).Header()
			if h.Get("Cache-Control") != tt.want || h.Get("Vary") != "Authorization, Origin" {
				t.Errorf("%s %s: Cache-Control %q, Vary %q", tt.method, tt.target, h.Get("Cache-Control"), h.Get("Vary"))
			}
		}
	})
}

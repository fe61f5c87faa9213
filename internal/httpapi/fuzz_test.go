package httpapi

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"likewise/internal/auth"
	"likewise/internal/counts"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
)

// fuzzed is a public API over a memory ledger, without the check against the
// document, which would be most of the time.
type fuzzed struct {
	api     *api
	handler http.Handler
}

func newFuzzed(f testing.TB) *fuzzed {
	f.Helper()
	cursors, err := like.NewCursors([]byte("a cursor key of thirty-two bytes"))
	if err != nil {
		f.Fatal(err)
	}
	l := memory.New(memory.Config{})
	f.Cleanup(func() { l.Close() })
	a := &api{
		site:   &site{cfg: DefaultConfig(), auth: fakeAuth{}, log: slog.New(slog.DiscardHandler), metrics: newMetrics(nil, "fuzz")},
		ledger: l, counts: counts.New(l, nil, counts.DefaultConfig(), nil), cursors: cursors,
	}
	return &fuzzed{a, a.handler(a.routes())}
}

// send fails the test on a 5xx, a redirect, or an error that is no problem.
func (h *fuzzed) send(t *testing.T, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	path, rawQuery, _ := strings.Cut(target, "?")
	u := &url.URL{RawQuery: rawQuery}
	decoded, err := url.PathUnescape(path)
	if err != nil || !strings.HasPrefix(path, "/") {
		t.Skip("not a request that net/http accepts")
	}
	u.Path, u.RawPath = decoded, path
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	r.URL, r.RequestURI = u, target
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+tokenOf("u1", auth.ScopeWriteAny, auth.ScopeImport))
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	if w.Code >= 500 || w.Code >= 300 && w.Code < 400 || w.Code < 200 {
		t.Fatalf("%s %q with %q: %d %s", method, target, body, w.Code, w.Body)
	}
	if w.Code >= 400 && !strings.HasPrefix(w.Header().Get("Content-Type"), "application/problem+json") {
		t.Fatalf("%s %q: %d without a problem", method, target, w.Code)
	}
	return w
}

// FuzzPath also checks that what a path likes is exactly one item, named by the
// path decoded once.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		"/v1/posts/1/like", "/v1/posts/a%2Fb/like", "/v1//posts/1/like", "/v1/posts/%2e%2e/like", "/v1/posts/%FF/like",
		"/v1/posts/%25/like", "/v1/me/likes", "/v1/likes:batch", "/v1/likes%3Abatch", "/", "/v1/posts/../1/like", "/v1/é/1/like",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if strings.Contains(path, "?") {
			t.Skip()
		}
		h := newFuzzed(t)
		for _, method := range []string{"GET", "DELETE", "POST", "PATCH"} {
			h.send(t, method, path, "")
		}
		if w := h.send(t, "PUT", path, ""); w.Code != http.StatusOK {
			return
		}
		page, err := h.api.ledger.LikedBy(t.Context(), "u1", like.Fact{}, 2)
		if err != nil || len(page.Facts) != 1 {
			t.Fatalf("%q liked %v, %v", path, page, err)
		}
		segments := strings.Split(path, "/")
		id, err := url.PathUnescape(segments[3])
		if err != nil || len(segments) != 5 || page.Facts[0].Item.ID != id {
			t.Fatalf("%q liked %q", path, page.Facts[0].Item)
		}
	})
}

// FuzzCountsQuery also checks that an accepted query has one entry per id.
func FuzzCountsQuery(f *testing.F) {
	for _, seed := range []string{
		"posts=1,2&games=7", "posts=1%2C2", "posts=%", "posts=1;2", "=", "&", "posts=1&posts=1", "a=%C3%A9", "posts=+", "token=x",
	} {
		f.Add(seed)
	}
	h := newFuzzed(f)
	f.Fuzz(func(t *testing.T, query string) {
		if strings.Contains(query, "#") {
			t.Skip()
		}
		w := h.send(t, "GET", "/v1/likes/counts?"+query, "")
		if w.Code != http.StatusOK {
			return
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatalf("%q was accepted, net/url says %v", query, err)
		}
		want := 0
		for _, list := range values {
			for _, v := range list {
				want += strings.Count(v, ",") + 1
			}
		}
		if got := strings.Count(w.Body.String(), `{"collection":`); got != want {
			t.Fatalf("%q: %d entries, want %d: %s", query, got, want, w.Body)
		}
	})
}

// FuzzHTTPCursor also checks that a made-up cursor is never accepted.
func FuzzHTTPCursor(f *testing.F) {
	h := newFuzzed(f)
	item := like.Item{Collection: "posts", ID: "1"}
	good := h.api.cursors.SealLiker(like.Fact{Item: item, User: "u1", Since: 7})
	for _, seed := range []string{good, good + "=", good[1:], "", "AAAA", "%00", h.api.cursors.SealLiked(like.Fact{Item: item, User: "u1", Since: 7})} {
		f.Add(seed, "10")
	}
	f.Fuzz(func(t *testing.T, cursor, limit string) {
		query := "?" + url.Values{"cursor": {cursor}, "limit": {limit}}.Encode()
		w := h.send(t, "GET", "/v1/posts/1/likers"+query, "")
		h.send(t, "GET", "/v1/me/likes"+query, "")
		if w.Code == http.StatusOK && cursor != good {
			t.Fatalf("%q was accepted", cursor)
		}
	})
}

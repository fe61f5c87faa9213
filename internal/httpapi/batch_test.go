package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"likewise/internal/auth"
	"likewise/internal/like"
	"likewise/internal/limit"
)

var (
	backend  = tokenOf("backend", auth.ScopeWriteAny)
	importer = tokenOf("backend", auth.ScopeWriteAny, auth.ScopeImport)
)

func commandsOf(lines ...string) string { return `{"commands":[` + strings.Join(lines, ",") + `]}` }

func lineOf(op, id, user string) string {
	return fmt.Sprintf(`{"op":%q,"collection":"posts","id":%q,"user":%q}`, op, id, user)
}

func TestBatchIsAppliedInOrder(t *testing.T) {
	inBothModes(t, func(s *service) {
		s.post(backend, "/v1/likes:batch", commandsOf(
			lineOf("like", "1", "u1"), lineOf("like", "1", "u2"), lineOf("like", "1", "u1"), lineOf("unlike", "1", "u2"),
			lineOf("unlike", "2", "u1"), lineOf("like", "3", "u3"))).want(200, "")
		s.settle()
		s.get(tokenOf("u1"), "/v1/likes/counts?posts=1,2,3").want(200, `{"counts":[`+
			`{"collection":"posts","id":"1","count":1,"display":"1","liked_by_me":true},`+
			`{"collection":"posts","id":"2","count":0,"display":"0","liked_by_me":false},`+
			`{"collection":"posts","id":"3","count":1,"display":"1","liked_by_me":false}]}`)
		s.post(backend, "/v1/likes:batch", commandsOf(lineOf("like", "1", "u1"), lineOf("unlike", "3", "u3"))).
			want(200, `{"results":[{"liked":true,"count":1},{"liked":false,"count":0}]}`)
	})
}

func TestBatchRefusesAsAWhole(t *testing.T) {
	good := lineOf("like", "1", "u1")
	// Virtual time begins in the year 2000.
	future := "2026-01-01T00:00:00Z"
	timed := func(at string) string { return strings.Replace(good, `}`, `,"liked_at":"`+at+`"}`, 1) }
	once(t, func(s *service) {
		for name, tt := range map[string]struct{ body, code, detail string }{
			"empty":         {`{"commands":[]}`, "invalid_body", ""},
			"missing":       {`{}`, "invalid_body", ""},
			"unknown op":    {commandsOf(good, lineOf("LIKE", "1", "u1")), "invalid_request", "commands[1]: "},
			"no op":         {commandsOf(good, `{"collection":"posts","id":"1","user":"u1"}`), "invalid_request", "commands[1]: "},
			"no user":       {commandsOf(good, good, lineOf("like", "1", "")), "invalid_request", "commands[2]: "},
			"no item":       {commandsOf(`{"op":"like","user":"u1"}`), "invalid_request", "commands[0]: "},
			"unknown field": {commandsOf(good, strings.Replace(good, `}`, `,"x":"1"}`, 1)), "invalid_body", "commands[1]: "},
			"field twice":   {commandsOf(strings.Replace(good, `}`, `,"user":"u2"}`, 1)), "invalid_body", "commands[0]: "},
			"bad time":      {commandsOf(good, timed("yesterday")), "invalid_body", "commands[1]: "},
			"loose time":    {commandsOf(timed("1994-01-01T01:02:03,5Z")), "invalid_body", "commands[0]: "},
			"short time":    {commandsOf(timed("1994-01-01T1:02:03Z")), "invalid_body", "commands[0]: "},
			"before 1970":   {commandsOf(timed("1969-12-31T23:59:59Z")), "invalid_body", "commands[0]: "},
			"at 1970":       {commandsOf(timed("1970-01-01T00:00:00Z")), "invalid_body", "commands[0]: "},
			"in the future": {commandsOf(good, timed(future)), "invalid_request", "command 1: "},
			"timed unlike":  {commandsOf(strings.Replace(timed("1994-01-01T00:00:00Z"), `"like"`, `"unlike"`, 1)), "invalid_request", "commands[0]: "},
			"too many":      {commandsOf(strings.Repeat(good+",", 1000) + good), "too_many", ""},
			"an array":      {`[` + good + `]`, "invalid_body", ""},
		} {
			p := s.post(importer, "/v1/likes:batch", tt.body).problem(400, tt.code)
			if !strings.HasPrefix(p.Detail, tt.detail) {
				t.Errorf("%s: detail %q, want %q", name, p.Detail, tt.detail)
			}
		}
		s.get("", "/v1/posts/1/like").want(200, `{"liked":false,"count":0}`)
		s.post(importer, "/v1/likes:batch", commandsOf(strings.Repeat(good+",", 999)+good)).want(200, "")
		s.post(importer, "/v1/likes:batch?x=1", commandsOf(good)).problem(400, "invalid_query")
	})
}

func TestBatchNeedsItsScopes(t *testing.T) {
	timed := commandsOf(`{"op":"like","collection":"posts","id":"1","user":"u1","liked_at":"1995-05-06T07:08:09.000010Z"}`)
	once(t, func(s *service) {
		for token, status := range map[string]int{
			"": 401, "bad": 401, tokenOf("u1"): 403, tokenOf("u1", auth.ScopeAdmin, auth.ScopeImport): 403, backend: 200,
		} {
			a := s.post(token, "/v1/likes:batch", commandsOf(lineOf("like", "1", "u2")))
			if a.Code != status || status >= 400 && !strings.HasPrefix(a.Header().Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("token %q: %d, WWW-Authenticate %q", token, a.Code, a.Header().Get("WWW-Authenticate"))
			}
		}
		a := s.post(backend, "/v1/likes:batch", timed)
		a.problem(403, "missing_scope")
		if got := a.Header().Get("WWW-Authenticate"); !strings.Contains(got, `scope="likes:import"`) {
			t.Errorf("WWW-Authenticate %q", got)
		}
		s.post(importer, "/v1/likes:batch", timed).want(200, `{"results":[{"liked":true,"count":2}]}`)
		s.get(tokenOf("u1"), "/v1/me/likes").want(200,
			`{"likes":[{"collection":"posts","id":"1","liked_at":"1995-05-06T07:08:09.00001Z"}]}`)
	})
}

func TestBatchIsExemptFromTheUserLimit(t *testing.T) {
	none := &fakeLimit{d: limit.Decision{Limit: 10, Window: 2, RetryAfter: 1}}
	once(t, func(s *service) {
		s.post(backend, "/v1/likes:batch", oneCommand).want(200, "")
		s.do(call{method: http.MethodPut, target: "/v1/posts/1/like", token: backend}).problem(429, "rate_limited")
	}, func(o *options) { o.deps.UserLimit = none })
}

// TestBatchIsRefusedAtTheDoor shows that a batch is not even read right after the
// ledger refused one, and is served again soon.
func TestBatchIsRefusedAtTheDoor(t *testing.T) {
	once(t, func(s *service) {
		s.faults.set(like.ErrOverloaded)
		s.post(backend, "/v1/likes:batch", oneCommand).problem(503, "overloaded")
		s.faults.set(nil)
		s.post(backend, "/v1/likes:batch", oneCommand).problem(503, "overloaded")
		time.Sleep(shedFor)
		s.post(backend, "/v1/likes:batch", oneCommand).want(200, "")
	})
}

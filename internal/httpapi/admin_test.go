package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/auth"
	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/internal/reconcile"
)

var operator = tokenOf("operator", auth.ScopeAdmin)

func (s *service) operate(method, target, body string) answer {
	s.Helper()
	return s.do(call{method: method, target: target, token: operator, body: body, admin: true})
}

func TestHealth(t *testing.T) {
	once(t, func(s *service) {
		s.do(call{method: "GET", target: "/livez", admin: true}).want(200, `{"status":"ok"}`)
		s.do(call{method: "GET", target: "/readyz", admin: true}).want(200, `{"status":"ready","checks":{"ledger":"ok"}}`)
		s.do(call{method: "GET", target: "/metrics", admin: true}).want(200, "up 1\n")
		s.faults.set(like.ErrUnavailable)
		s.do(call{method: "GET", target: "/livez", admin: true}).want(200, "")
		s.do(call{method: "GET", target: "/readyz", admin: true}).want(503, `{"status":"not ready","checks":{"ledger":"unavailable"}}`)
	})
}

func TestAdminNeedsItsScope(t *testing.T) {
	once(t, func(s *service) {
		s.put("u1", "posts/1")
		for _, rt := range (&admin{}).routes() {
			method, path, _ := strings.Cut(rt.pattern, " ")
			if rt.access.system {
				continue
			}
			target := strings.NewReplacer("{user}", "u1", "{collection}", "posts", "{id}", "1").Replace(path)
			for token, status := range map[string]int{
				"": 401, "bad": 401, tokenOf("u1"): 403, tokenOf("u1", auth.ScopeWriteAny, auth.ScopeImport): 403,
			} {
				a := s.do(call{method: method, target: target, token: token, admin: true})
				if a.Code != status || a.Header().Get("WWW-Authenticate") == "" {
					t.Errorf("%s with %q: %d", rt.pattern, token, a.Code)
				}
			}
		}
		s.get(tokenOf("u1"), "/v1/posts/1/like").want(200, `{"liked":true,"count":1}`)
	})
}

func TestEraseAndRemove(t *testing.T) {
	inBothModes(t, func(s *service) {
		for _, user := range []string{"u1", "u2", "a/b"} {
			for _, id := range []string{"1", "2", "3"} {
				s.put(user, "posts/"+id)
			}
		}
		s.operate("POST", "/admin/v1/users/u1/erase", "").want(200, `{"removed":3}`)
		s.operate("POST", "/admin/v1/users/u1/erase", "").want(200, `{"removed":0}`)
		s.operate("POST", "/admin/v1/users/a%2Fb/erase", "{}").want(200, `{"removed":3}`)
		s.operate("POST", "/admin/v1/items/posts/1/remove", "").want(200, `{"removed":1}`)
		if !strings.Contains(s.log.String(), "item=posts/1 ") {
			t.Errorf("log: %s", s.log)
		}
		s.settle()
		s.get(tokenOf("u2"), "/v1/likes/counts?posts=1,2,3").want(200, `{"counts":[`+
			`{"collection":"posts","id":"1","count":0,"display":"0","liked_by_me":false},`+
			`{"collection":"posts","id":"2","count":1,"display":"1","liked_by_me":true},`+
			`{"collection":"posts","id":"3","count":1,"display":"1","liked_by_me":true}]}`)
		s.get(tokenOf("u1"), "/v1/me/likes").want(200, `{"likes":[]}`)
		s.operate("POST", "/admin/v1/users/"+strings.Repeat("x", 129)+"/erase", "").problem(400, "invalid_request")
		s.operate("POST", "/admin/v1/users/u1/erase?repair=true", "").problem(400, "invalid_query")
		s.operate("POST", "/admin/v1/users/u1/erase", `{"user":"u2"}`).problem(400, "invalid_body")
		s.operate("GET", "/admin/v1/users/u1/erase", "").problem(405, "method_not_allowed")
		s.operate("POST", "/admin/v1//users/u1/erase", "").problem(400, "invalid_path")
	})
}

func TestAudit(t *testing.T) {
	inBothModes(t, func(s *service) {
		s.put("u1", "posts/1")
		s.settle()
		const target = "/admin/v1/items/posts/1/audit"
		s.operate("POST", target, "").want(200,
			`{"collection":"posts","id":"1","facts":1,"total":1,"unlisted":0,"phantom":0,"drift":false,"repaired":false}`)
		s.ledger.Skew(like.Item{Collection: "posts", ID: "1"}, 5)
		s.operate("POST", target+"?repair=false", "").want(200,
			`{"collection":"posts","id":"1","facts":1,"total":6,"unlisted":0,"phantom":0,"drift":true,"repaired":false}`)
		s.operate("POST", target+"?repair=true", "").want(200,
			`{"collection":"posts","id":"1","facts":1,"total":6,"unlisted":0,"phantom":0,"drift":true,"repaired":true}`)
		s.operate("POST", target, "").want(200,
			`{"collection":"posts","id":"1","facts":1,"total":1,"unlisted":0,"phantom":0,"drift":false,"repaired":false}`)
		for _, q := range []string{"?repair=yes", "?repair=", "?repair=true&repair=true", "?x=1"} {
			s.operate("POST", target+q, "").problem(400, "invalid_query")
			s.operate("POST", "/admin/v1/reconcile"+q, "").problem(400, "invalid_query")
		}
	})
}

// linesOf decodes an answer of JSON lines.
func linesOf(t *testing.T, a answer) (all []map[string]map[string]any) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(a.Body.String()))
	for lines.Scan() {
		var line map[string]map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		all = append(all, line)
	}
	return all
}

func TestReconcile(t *testing.T) {
	inBothModes(t, func(s *service) {
		for i := range 5 {
			s.put("u1", fmt.Sprint("posts/", i))
		}
		s.settle()
		s.ledger.Skew(like.Item{Collection: "posts", ID: "3"}, -1)
		for _, tt := range []struct {
			query             string
			drifted, repaired float64
		}{{"", 1, 0}, {"?repair=true", 1, 1}, {"", 0, 0}} {
			got := linesOf(t, s.operate("POST", "/admin/v1/reconcile"+tt.query, "").want(200, ""))
			want := map[string]any{"items": 5.0, "drifted": tt.drifted, "repaired": tt.repaired}
			if d := cmp.Diff(want, got[len(got)-1]["summary"]); d != "" || len(got) != 1+int(tt.drifted) {
				t.Errorf("%q: %v\n%s", tt.query, got, d)
			}
			if tt.drifted > 0 && got[0]["drift"]["id"] != "3" {
				t.Errorf("%q: %v", tt.query, got[0])
			}
		}
	})
}

func TestReconcileThatStopsSaysWhy(t *testing.T) {
	once(t, func(s *service) {
		for i := range 5 {
			s.put("u1", fmt.Sprint("posts/", i))
			s.ledger.Skew(like.Item{Collection: "posts", ID: fmt.Sprint(i)}, 1)
		}
		cfg := reconcile.DefaultConfig()
		cfg.MaxRepairs = 2
		s.admin = mustAdmin(t, AdminDeps{Keeper: reconcile.New(s.ledger, cfg, nil, s.logger()), Auth: fakeAuth{}, Log: s.logger()})
		got := linesOf(t, s.operate("POST", "/admin/v1/reconcile?repair=true", "").want(200, ""))
		sum := got[len(got)-1]["summary"]
		if text, _ := sum["stopped"].(string); !strings.HasPrefix(text, "stopped after correcting 3 items") || sum["repaired"] != 3.0 {
			t.Errorf("%v", got)
		}
	})
}

// brokenKeeper ends its streams with a failure after two elements.
type brokenKeeper struct{ ledger.Keeper }

func (brokenKeeper) AuditAll(context.Context, bool) iter.Seq2[ledger.Audit, error] {
	return func(yield func(ledger.Audit, error) bool) {
		for range 2 {
			time.Sleep(progressEvery)
			if !yield(ledger.Audit{}, nil) {
				return
			}
		}
		yield(ledger.Audit{}, like.ErrUnavailable)
	}
}

func (brokenKeeper) Export(context.Context) iter.Seq2[like.Fact, error] {
	return func(yield func(like.Fact, error) bool) {
		_ = yield(like.Fact{Item: like.Item{Collection: "posts", ID: "1"}, User: "u1", Since: 1}, nil) &&
			yield(like.Fact{}, errors.New("disk on fire"))
	}
}

func TestReconcileThatFailsSaysSo(t *testing.T) {
	once(t, func(s *service) {
		s.admin = mustAdmin(t, AdminDeps{Keeper: brokenKeeper{}, Auth: fakeAuth{}, Log: s.logger()})
		got := linesOf(t, s.operate("POST", "/admin/v1/reconcile", "").want(200, ""))
		if len(got) != 3 || got[0]["progress"]["items"] != 1.0 || got[2]["error"]["code"] != "unavailable" {
			t.Errorf("%v", got)
		}
		if !strings.Contains(s.log.String(), "POST /admin/v1/reconcile") {
			t.Errorf("log: %s", s.log)
		}
	})
}

func TestExport(t *testing.T) {
	inBothModes(t, func(s *service) {
		var commands, want []string
		for i := range 1000 {
			id, user := fmt.Sprint(i%10), fmt.Sprint("u", i/10)
			commands = append(commands, fmt.Sprintf(
				`{"op":"like","collection":"posts","id":%q,"user":%q,"liked_at":"1999-01-02T03:04:05.%06dZ"}`, id, user, i+1))
			at := strings.TrimRight(fmt.Sprintf("1999-01-02T03:04:05.%06d", i+1), "0") + "Z"
			want = append(want, fmt.Sprintf(`{"collection":"posts","id":%q,"user":%q,"liked_at":%q}`, id, user, at))
		}
		s.post(importer, "/v1/likes:batch", commandsOf(commands...)).want(200, "")
		got := strings.Split(strings.TrimSuffix(s.operate("GET", "/admin/v1/export", "").want(200, "").Body.String(), "\n"), "\n")
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func TestBrokenExportCannotBeTakenForTheWhole(t *testing.T) {
	log := &logged{}
	s := &service{T: t, log: log}
	server := httptest.NewServer(mustAdmin(t, AdminDeps{Keeper: brokenKeeper{}, Auth: fakeAuth{}, Log: s.logger()}))
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/admin/v1/export", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+operator)
	res, err := http.DefaultClient.Do(req)
	if err == nil {
		defer res.Body.Close()
		var body []byte
		if body, err = io.ReadAll(res.Body); err == nil {
			t.Fatalf("the answer ended well: %s", body)
		}
	}
	if !strings.Contains(log.String(), "disk on fire") {
		t.Errorf("log: %s", log)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestBackup(t *testing.T) {
	once(t, func(s *service) {
		why := s.operate("POST", "/admin/v1/backup", `{"dir":"/no/where"}`).problem(501, "unsupported").Detail
		if !strings.Contains(why, "memory ledger: backup") {
			t.Errorf("a store without backups answers %q", why)
		}
		for _, body := range []string{`{}`, `{"dir":""}`, `{"dir":1}`, `{"dir":"a","x":"b"}`, `[]`} {
			s.operate("POST", "/admin/v1/backup", body).problem(400, "invalid_body")
		}
		s.operate("POST", "/admin/v1/backup", "").problem(415, "unsupported_media_type")
	})
	dirs := &backupKeeper{}
	once(t, func(s *service) {
		s.admin = mustAdmin(t, AdminDeps{Keeper: dirs, Auth: fakeAuth{}, Log: s.logger()})
		s.operate("POST", "/admin/v1/backup", `{"dir":"copies/1"}`).want(200, `{"dir":"copies/1"}`)
		if d := cmp.Diff([]string{"copies/1"}, dirs.dirs); d != "" {
			t.Error(d)
		}
	})
}

type backupKeeper struct {
	ledger.Keeper
	dirs []string
}

func (k *backupKeeper) Backup(_ context.Context, dir string) error {
	k.dirs = append(k.dirs, dir)
	return nil
}

func mustAdmin(t *testing.T, d AdminDeps) http.Handler {
	t.Helper()
	h, err := NewAdmin(d)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

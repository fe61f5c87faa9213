package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"likewise/internal/auth"
	"likewise/internal/demo"
)

func TestPages(t *testing.T) {
	r := start(t, testConfig(t), testOptions())
	operator := r.token("op", auth.ScopeAdmin)
	r.want(200, "customElements", "GET", r.api+"/button.js", "", "")
	r.want(200, "<!doctype html>", "GET", r.admin+"/console/", "", "")
	r.want(200, "<!doctype html>", "GET", r.admin+"/console", "", "")
	r.want(401, "missing_token", "GET", r.admin+"/console/api/stats", "", "")
	r.want(200, `"likes_total":-1`, "GET", r.admin+"/console/api/stats", operator, "")
	// The pages of one listener are not on the other, and a server is no demo.
	r.want(404, "not_found", "GET", r.api+"/", "", "")
	r.want(404, "not_found", "GET", r.api+"/demo/token", "", "")
	r.want(404, "not_found", "GET", r.api+"/console/api/stats", "", "")
	r.want(400, "invalid_path", "GET", r.api+"//button.js", "", "")
	r.want(404, "not_found", "GET", r.admin+"/button.js", "", "")
}

// The console reads metrics by name; each of them has to exist.
func TestConsoleKnowsTheMetrics(t *testing.T) {
	r := start(t, testConfig(t), testOptions())
	ann, operator := r.token("ann"), r.token("op", auth.ScopeAdmin)
	r.want(200, "", "PUT", r.api+"/v1/posts/1/like", ann, "")
	r.want(200, "", "GET", r.api+"/v1/likes/counts?posts=1,2", ann, "")
	r.want(401, "", "PUT", r.api+"/v1/posts/1/like", "", "")
	r.want(200, "", "POST", r.admin+"/admin/v1/reconcile", operator, "")
	res, err := r.client.Get(r.api + "/v1/likes/stream?posts=1")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := res.Body.Read(make([]byte, 1)); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("stream: %d, %v", res.StatusCode, err)
	}
	for _, part := range []string{
		`"commands_total":1`, `"refused_total":1`, `"commits_total":1`, `"l1_hits_total":1`, `"ledger_hits_total":1`,
		`"live_clients":{"sse":1,"ws":0}`, `"live_frames_total":1`, `"items":1`,
		`"ready":[{"name":"ledger","ok":true,"detail":"ok"}`,
	} {
		r.want(200, part, "GET", r.admin+"/console/api/stats", operator, "")
	}
	for found := false; !found && t.Context().Err() == nil; { // the feed comes a little later
		_, text, err := r.call("GET", r.admin+"/console/api/stats", operator, "")
		if err != nil {
			t.Fatal(err)
		}
		found = strings.Contains(text, `"hot":[{"collection":"posts","id":"1"`)
	}
}

func TestDemo(t *testing.T) {
	o := testOptions()
	crowd := demo.DefaultConfig()
	o.Demo = &crowd
	cfg := testConfig(t)
	r := start(t, cfg, o)
	r.want(200, "This is a demo.", "GET", r.api+"/", "", "")
	_, text, err := r.call("GET", r.api+"/demo/token", "", "")
	var visitor struct{ Token, User string }
	if err := errors.Join(err, json.Unmarshal([]byte(text), &visitor)); err != nil {
		t.Fatal(err)
	}
	r.want(200, `"liked":true`, "PUT", r.api+"/v1/posts/1/like", visitor.Token, "")
	r.want(200, `"posts","id":"1"`, "GET", r.api+"/v1/me/likes", visitor.Token, "")
	r.want(403, "missing_scope", "GET", r.admin+"/console/api/stats", visitor.Token, "")
	var out strings.Builder
	r.GreetDemo(&out, cfg, "likewise")
	for _, part := range []string{r.api + "/\n", r.admin + "/console/", "likewise token operator --scope likes:admin --data-dir " + cfg.DataDir} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the greeting does not say %q:\n%s", part, out.String())
		}
	}
}

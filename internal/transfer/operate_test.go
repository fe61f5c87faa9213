package transfer

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

var drifted = ledger.Audit{Item: like.Item{Collection: "posts", ID: "1"}, Facts: 3, Total: 4, Repaired: true}

const (
	driftLine   = `{"drift":{"collection":"posts","id":"1","facts":3,"total":4,"unlisted":0,"phantom":0,"drift":true,"repaired":true}}` + "\n"
	summaryLine = `{"summary":{"items":9,"drifted":1,"repaired":1}}` + "\n"
)

func TestRemoteReconcile(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		kind         error
	}{
		{"stopped", driftLine + strings.Replace(summaryLine, "}", `,"stopped":"too much"}`, 1), nil},
		{"whole", `{"progress":{"items":3,"drifted":0,"repaired":0}}` + "\n" + driftLine + summaryLine, nil},
		{"without a summary", driftLine, like.ErrUnavailable},
		{"cut off", driftLine + `{"summ`, like.ErrUnavailable},
		{"failed", driftLine + `{"error":{"code":"unavailable","title":"No"}}`, like.ErrUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked string
			r := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				asked = r.Method + " " + r.URL.String()
				_, _ = io.WriteString(w, tc.answer)
			})
			var found []ledger.Audit
			sum, err := r.Reconcile(t.Context(), true, func(a ledger.Audit) { found = append(found, a) })
			if asked != "POST /admin/v1/reconcile?repair=true" {
				t.Errorf("asked %s", asked)
			}
			if diff := cmp.Diff([]ledger.Audit{drifted}, found); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			if !errors.Is(err, tc.kind) || err == nil && sum != (Tally{Items: 9, Drifted: 1, Repaired: 1, Stopped: map[bool]string{true: "too much"}[tc.name == "stopped"]}) {
				t.Errorf("summary %+v, error %v", sum, err)
			}
		})
	}
}

type auditedKeeper struct {
	ledger.Keeper
	seq iter.Seq2[ledger.Audit, error]
}

func (k auditedKeeper) AuditAll(context.Context, bool) iter.Seq2[ledger.Audit, error] { return k.seq }

func TestReconcileOfALedger(t *testing.T) {
	k := auditedKeeper{seq: func(yield func(ledger.Audit, error) bool) {
		_ = yield(ledger.Audit{Facts: 1, Total: 1}, nil) && yield(drifted, nil) && yield(ledger.Audit{}, like.ErrClosed)
	}}
	var found []ledger.Audit
	sum, err := Reconcile(t.Context(), k, true, func(a ledger.Audit) { found = append(found, a) })
	if !errors.Is(err, like.ErrClosed) || sum != (Tally{Items: 2, Drifted: 1, Repaired: 1}) || len(found) != 1 {
		t.Errorf("summary %+v, found %v, error %v", sum, found, err)
	}
}

func TestOperatorRequests(t *testing.T) {
	item := like.Item{Collection: "posts", ID: "a/b ?"}
	for _, tc := range []struct {
		name, want, answer string
		call               func(r *Remote) (any, error)
		result             any
	}{
		{
			"audit", "POST /admin/v1/items/posts/a%2Fb%20%3F/audit?repair=false", driftLine[9 : len(driftLine)-2],
			func(r *Remote) (any, error) {
				var found ledger.Audit
				sum, err := r.ReconcileItem(t.Context(), item, false, func(a ledger.Audit) { found = a })
				if sum != (Tally{Items: 1, Drifted: 1, Repaired: 1}) {
					t.Errorf("tally %+v", sum)
				}
				return found, err
			}, drifted,
		},
		{
			"erase", "POST /admin/v1/users/a%2Fb/erase", `{"removed":7}`,
			func(r *Remote) (any, error) { return r.EraseUser(t.Context(), "a/b") }, int64(7),
		},
		{
			"remove", "POST /admin/v1/items/posts/a%2Fb%20%3F/remove", `{"removed":8}`,
			func(r *Remote) (any, error) { return r.RemoveItem(t.Context(), item) }, int64(8),
		},
		{
			"backup", `POST /admin/v1/backup {"dir":"/b"}`, `{"dir":"/b"}`,
			func(r *Remote) (any, error) { return nil, r.Backup(t.Context(), "/b") }, nil,
		},
		{
			"ready", "GET /readyz", `{"status":"ready"}`,
			func(r *Remote) (any, error) { return nil, r.Ready(t.Context()) }, nil,
		},
		{"export", "GET /admin/v1/export", twoLines, func(r *Remote) (any, error) {
			body, err := r.Export(t.Context())
			if err != nil {
				return nil, err
			}
			defer body.Close()
			text, err := io.ReadAll(body)
			return string(text), err
		}, twoLines},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked string
			r := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = strings.TrimSpace(r.Method + " " + r.URL.String() + " " + string(body))
				_, _ = io.WriteString(w, tc.answer)
			})
			got, err := tc.call(r)
			if err != nil || asked != tc.want {
				t.Fatalf("asked %s, error %v; want %s", asked, err, tc.want)
			}
			if diff := cmp.Diff(tc.result, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotReadySaysWhy(t *testing.T) {
	r := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"status":"not ready","checks":{"ledger":"disk is nearly full"}}`)
	})
	r.RetryFor = 0
	if err := r.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "disk is nearly full") {
		t.Errorf("error %v", err)
	}
}

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"likewise/internal/auth"
	"likewise/internal/console"
	"likewise/internal/ledger"
	"likewise/internal/like"
)

// AdminDeps are the parts that the admin API speaks for. All of them outlive it.
type AdminDeps struct {
	Ledger  ledger.Ledger
	Keeper  ledger.Keeper // of the ledger, watched
	Console *console.Console
	Auth    Authenticator
	// Checks tell, by name, whether the process and what it depends on can serve.
	Checks     map[string]func(context.Context) error
	Metrics    http.Handler // of GET /metrics
	Log        *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// adminBodyBytes has room for a batch of the longest names, all escaped.
const adminBodyBytes = 2 << 20

// admin is the API of the admin listener.
type admin struct {
	*site
	ledger   ledger.Ledger
	keeper   ledger.Keeper
	console  *console.Console
	checks   map[string]func(context.Context) error
	scrape   http.Handler
	document []byte
}

// NewAdmin returns the API of the admin listener: health and metrics for
// everybody who reaches it, operation for tokens with the scope likes:admin. It
// starts nothing and owns nothing of d.
func NewAdmin(d AdminDeps) (http.Handler, error) {
	document, err := toJSON(adminDocument)
	if err != nil {
		return nil, fmt.Errorf("admin API document: %w", err)
	}
	cfg := DefaultConfig()
	cfg.MaxBodyBytes = adminBodyBytes
	a := &admin{
		site: &site{
			cfg: cfg, auth: d.Auth, log: d.Log.With("component", "admin"),
			metrics: newMetrics(d.Registerer, "admin"),
		},
		ledger: d.Ledger, keeper: d.Keeper, console: d.Console, checks: d.Checks, scrape: d.Metrics, document: document,
	}
	return a.handler(a.routes()), nil
}

func (a *admin) routes() []route {
	var (
		system   = access{system: true}
		operator = access{token: true, scope: auth.ScopeAdmin, endless: true}
		hold     = access{token: true, scope: auth.ScopeAdmin, endless: true, duplex: true}
		look     = access{token: true, scope: auth.ScopeAdmin}
	)
	return []route{
		{pattern: "GET /livez", access: system, serve: a.live},
		{pattern: "GET /readyz", access: system, serve: a.ready},
		{pattern: "GET /metrics", access: system, serve: a.measured},
		{pattern: "GET /admin/v1/openapi.json", access: system, serve: a.openapi},
		{pattern: "POST /admin/v1/users/{user}/erase", access: operator, serve: a.erase},
		{pattern: "POST /admin/v1/items/{collection}/{id}/remove", access: operator, serve: a.remove},
		{pattern: "POST /admin/v1/items/{collection}/{id}/audit", access: operator, serve: a.audit},
		{pattern: "POST /admin/v1/reconcile", access: operator, serve: a.reconcile},
		{pattern: "GET /admin/v1/export", access: operator, serve: a.export},
		{pattern: "GET /admin/v1/changes", access: operator, serve: a.changes},
		{pattern: "GET /admin/v1/items/{collection}/{id}/likers", access: look, serve: a.itemLikers},
		{pattern: "POST /admin/v1/likes:batch", access: look, serve: a.adminBatch},
		{pattern: "POST /admin/v1/freeze", access: hold, serve: a.freeze},
		{pattern: "POST /admin/v1/backup", access: operator, serve: a.backup},
		{pattern: "GET /console/api/stats", access: look, serve: a.consoleStats},
		{pattern: "GET /console/api/items/{collection}/{id}", access: look, serve: a.consoleItem},
		{pattern: "GET /console/api/users/{user}", access: look, serve: a.consoleUser},
	}
}

func (a *admin) live(x *exchange, _ *http.Request) error {
	return x.answer([]byte(`{"status":"ok"}`))
}

// health is the answer of readyz.
type health struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
}

// ready answers 200 when every check passes, else 503, and says which one did not.
func (a *admin) ready(x *exchange, r *http.Request) error {
	h, status := health{Status: "ready", Checks: map[string]string{}}, http.StatusOK
	for name, check := range a.checks {
		h.Checks[name] = "ok"
		if err := check(r.Context()); err != nil {
			h.Checks[name] = err.Error()
			h.Status, status = "not ready", http.StatusServiceUnavailable
		}
	}
	return x.answerJSON(status, h)
}

func (a *admin) measured(x *exchange, r *http.Request) error {
	a.scrape.ServeHTTP(x, r)
	return nil
}

func (a *admin) openapi(x *exchange, r *http.Request) error {
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	return x.answer(a.document)
}

// removed is the answer to erase and remove.
type removed struct {
	Removed int64 `json:"removed"`
}

func (a *admin) erase(x *exchange, r *http.Request) error {
	user := like.User(r.PathValue("user"))
	if err := user.Validate(); err != nil {
		return err
	}
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	n, err := a.keeper.EraseUser(r.Context(), user)
	if err != nil {
		return err
	}
	a.log.InfoContext(r.Context(), "user erased", "by", x.viewer(), "removed", n)
	return x.answerJSON(http.StatusOK, removed{n})
}

func (a *admin) remove(x *exchange, r *http.Request) error {
	item, err := pathItem(r)
	if err != nil {
		return err
	}
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	n, err := a.keeper.RemoveItem(r.Context(), item)
	if err != nil {
		return err
	}
	a.log.InfoContext(r.Context(), "item removed", "by", x.viewer(), "item", item.String(), "removed", n)
	return x.answerJSON(http.StatusOK, removed{n})
}

// backup writes a copy of the store into a new directory of this machine.
func (a *admin) backup(x *exchange, r *http.Request) error {
	if _, err := params(r.URL.RawQuery); err != nil {
		return err
	}
	text, err := a.readBody(x, r)
	if err != nil {
		return err
	}
	var dir string
	err = decode(text, func(in *input) {
		in.object(func(key string) {
			if key != "dir" {
				in.unknown(key)
				return
			}
			dir = in.str()
		})
	})
	if err == nil && dir == "" {
		err = refuse(invalidBody, "the field \"dir\" is missing")
	}
	if err != nil {
		return err
	}
	if err := a.keeper.Backup(r.Context(), dir); err != nil {
		return err
	}
	a.log.InfoContext(r.Context(), "backup written", "by", x.viewer(), "dir", dir)
	return x.answerJSON(http.StatusOK, map[string]string{"dir": dir})
}

// answerJSON is answer for values that are not worth appending by hand.
func (x *exchange) answerJSON(status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	x.send(status, body)
	return nil
}

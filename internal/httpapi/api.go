package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"likewise/internal/auth"
	"likewise/internal/counts"
	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/internal/limit"
	"likewise/internal/live"
)

// Deps are the parts that the public API speaks for. All of them outlive it.
type Deps struct {
	Ledger interface {
		ledger.Writer
		ledger.Reader
	}
	Counts  *counts.Counts
	Live    *live.Hub
	Auth    Authenticator
	Cursors *like.Cursors
	// UserLimit bounds the likes of one user, ReadLimit what one user reads,
	// AddressLimit requests without a valid token from one address; nil is no limit.
	UserLimit    limit.Limiter
	ReadLimit    limit.Limiter
	AddressLimit limit.Limiter
	Log          *slog.Logger
	Registerer   prometheus.Registerer // nil: metrics are not registered
}

// api is the public API.
type api struct {
	*site
	ledger interface {
		ledger.Writer
		ledger.Reader
	}
	counts   *counts.Counts
	live     *live.Hub
	cursors  *like.Cursors
	document []byte

	refusedAt atomic.Pointer[time.Time] // when the ledger last refused a batch
}

// New returns the public API. It starts nothing and owns nothing of d.
func New(cfg Config, d Deps) (http.Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	document, err := toJSON(publicDocument)
	if err != nil {
		return nil, fmt.Errorf("public API document: %w", err)
	}
	a := &api{
		site: &site{
			cfg: cfg, auth: d.Auth, log: d.Log.With("component", "http"),
			metrics:   newMetrics(d.Registerer, "public"),
			userLimit: d.UserLimit, readLimit: d.ReadLimit, addressLimit: d.AddressLimit,
		},
		ledger: d.Ledger, counts: d.Counts, live: d.Live, cursors: d.Cursors, document: document,
	}
	return a.handler(a.routes()), nil
}

func (a *api) routes() []route {
	var (
		read    = access{}
		watch   = access{endless: true}
		own     = access{token: true}
		write   = access{token: true, write: true}
		trusted = access{token: true, scope: auth.ScopeWriteAny}
		system  = access{system: true}
	)
	return []route{
		{pattern: "PUT /v1/{collection}/{id}/like", access: write, serve: a.put},
		{pattern: "DELETE /v1/{collection}/{id}/like", access: write, serve: a.delete},
		{pattern: "GET /v1/{collection}/{id}/like", access: read, serve: a.get},
		{pattern: "GET /v1/{collection}/{id}/likers", access: read, serve: a.likers},
		{pattern: "POST /v1/{collection}/{id}/likers/among", access: own, serve: a.among},
		{pattern: "GET /v1/likes/counts", access: read, serve: a.getCounts},
		{pattern: "POST /v1/likes/counts", access: read, serve: a.postCounts},
		{pattern: "GET /v1/likes/stream", access: watch, serve: a.stream},
		{pattern: "GET /v1/likes/ws", access: watch, serve: a.socket},
		{pattern: "GET /v1/me/likes", access: own, serve: a.mine},
		{pattern: "POST /v1/likes:batch", access: trusted, serve: a.batch},
		{pattern: "GET /v1/openapi.json", access: system, serve: a.openapi},
	}
}

// pathItem returns the item that a path names.
func pathItem(r *http.Request) (like.Item, error) {
	item := like.Item{Collection: r.PathValue("collection"), ID: r.PathValue("id")}
	return item, item.Validate()
}

// noExtras refuses a query and a body where a route takes neither.
func (s *site) noExtras(x *exchange, r *http.Request) error {
	if _, err := params(r.URL.RawQuery); err != nil {
		return err
	}
	return s.refuseBody(x, r)
}

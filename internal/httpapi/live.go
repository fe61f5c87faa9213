package httpapi

import (
	"net/http"

	"likewise/internal/limit"
	"likewise/internal/live"
)

// stream answers with the counts of items, and then with what changes of them.
func (a *api) stream(x *exchange, r *http.Request) error {
	items, err := itemsQuery(r.URL.RawQuery, a.live.MaxItems())
	if err != nil {
		return err
	}
	if err := a.refuseBody(x, r); err != nil {
		return err
	}
	return a.live.Stream(x, r, a.watcher(x, r), items)
}

// socket answers with a WebSocket, over which the client says what it watches.
func (a *api) socket(x *exchange, r *http.Request) error {
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	return a.live.Socket(x, r, a.watcher(x, r))
}

// watcher is who opens a stream: the user, or without one the address.
func (a *api) watcher(x *exchange, r *http.Request) live.Viewer {
	return live.Viewer{User: x.viewer(), Address: limit.Key(limit.ClientAddr(r, a.cfg.TrustedProxies))}
}

package httpapi

import (
	"net/http"

	"likewise/internal/like"
)

// The console's page asks these; see package console.

func (a *admin) consoleStats(x *exchange, r *http.Request) error {
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	stats, err := a.console.Stats(r.Context())
	if err != nil {
		return err
	}
	return x.answerJSON(http.StatusOK, stats)
}

func (a *admin) consoleItem(x *exchange, r *http.Request) error {
	item, err := pathItem(r)
	if err != nil {
		return err
	}
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	found, err := a.console.Item(r.Context(), item)
	if err != nil {
		return err
	}
	return x.answerJSON(http.StatusOK, found)
}

func (a *admin) consoleUser(x *exchange, r *http.Request) error {
	user := like.User(r.PathValue("user"))
	if err := user.Validate(); err != nil {
		return err
	}
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	found, err := a.console.User(r.Context(), user)
	if err != nil {
		return err
	}
	return x.answerJSON(http.StatusOK, found)
}

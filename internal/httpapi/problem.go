package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"

	"likewise/internal/auth"
	"likewise/internal/like"
	"likewise/internal/live"
)

// problem is one kind of failure as clients see it. Code and the type made of it
// are stable; title and detail are for people.
type problem struct {
	status int
	code   string
	title  string
}

var (
	invalidRequest   = problem{http.StatusBadRequest, "invalid_request", "The request is not valid"}
	invalidPath      = problem{http.StatusBadRequest, "invalid_path", "The path is not in its canonical form"}
	invalidQuery     = problem{http.StatusBadRequest, "invalid_query", "The query is not valid"}
	invalidBody      = problem{http.StatusBadRequest, "invalid_body", "The body is not valid"}
	invalidCursor    = problem{http.StatusBadRequest, "invalid_cursor", "The cursor is not one that this list returned"}
	tooMany          = problem{http.StatusBadRequest, "too_many", "More than one request may ask for"}
	userNotAccepted  = problem{http.StatusBadRequest, "user_not_accepted", "A user is named by the token only"}
	missingToken     = problem{http.StatusUnauthorized, "missing_token", "An access token is needed"}
	invalidToken     = problem{http.StatusUnauthorized, "invalid_token", "The access token is not accepted"}
	missingScope     = problem{http.StatusForbidden, "missing_scope", "The access token does not allow this"}
	originNotAllowed = problem{http.StatusForbidden, "origin_not_allowed", "Pages of this origin may not do this"}
	notFound         = problem{http.StatusNotFound, "not_found", "There is nothing here"}
	methodNotAllowed = problem{http.StatusMethodNotAllowed, "method_not_allowed", "The method is not offered here"}
	bodyTimeout      = problem{http.StatusRequestTimeout, "body_timeout", "The body did not arrive in time"}
	bodyTooLarge     = problem{http.StatusRequestEntityTooLarge, "body_too_large", "The body is too large"}
	uriTooLong       = problem{http.StatusRequestURITooLong, "uri_too_long", "The URL is too long"}
	unsupportedMedia = problem{http.StatusUnsupportedMediaType, "unsupported_media_type", "The body must be JSON"}
	headersTooLarge  = problem{http.StatusRequestHeaderFieldsTooLarge, "headers_too_large", "The token is too long"}
	rateLimited      = problem{http.StatusTooManyRequests, "rate_limited", "Too many requests"}
	tooManyStreams   = problem{http.StatusTooManyRequests, "too_many_streams", "Too many streams are open"}
	clientGone       = problem{499, "client_gone", "The client closed the request"}
	internalError    = problem{http.StatusInternalServerError, "internal", "Something went wrong here"}
	unsupported      = problem{http.StatusNotImplemented, "unsupported", "This store does not offer that"}
	overloaded       = problem{http.StatusServiceUnavailable, "overloaded", "Too busy now; try again"}
	unavailable      = problem{http.StatusServiceUnavailable, "unavailable", "Not available now; try again"}
	shuttingDown     = problem{http.StatusServiceUnavailable, "shutting_down", "Shutting down; try again"}
)

// problemOfKind maps every failure that has a name elsewhere. It is searched in
// order, and what is not in it is an internal error.
var problemOfKind = []struct {
	kind error
	problem
}{
	{auth.ErrUnauthenticated, invalidToken},
	{live.ErrTooMany, tooManyStreams},
	{live.ErrOrigin, originNotAllowed},
	{like.ErrInvalid, invalidRequest},
	{like.ErrNotFound, notFound},
	{like.ErrOverloaded, overloaded},
	{like.ErrUnavailable, unavailable},
	{like.ErrClosed, shuttingDown},
	{like.ErrCorrupt, internalError},
	{errors.ErrUnsupported, unsupported},
	{context.Canceled, clientGone},
	{context.DeadlineExceeded, unavailable},
}

// urn is the type of RFC 9457.
func (p problem) urn() string { return "urn:likewise:problem:" + p.code }

// refusal is a failure whose problem the code that found it knows.
type refusal struct {
	problem
	detail string
}

func (r *refusal) Error() string { return r.code + ": " + r.detail }

// refuse returns the error that becomes problem p with a detail for the caller.
func refuse(p problem, format string, args ...any) error {
	return &refusal{problem: p, detail: fmt.Sprintf(format, args...)}
}

// explain returns the problem of an error and the detail that a caller may see:
// only a caller's own mistake is explained, and what the store cannot do.
func explain(err error) (problem, string) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.problem, r.detail
	}
	for _, known := range problemOfKind {
		if errors.Is(err, known.kind) {
			if known.status < 500 || known.kind == errors.ErrUnsupported {
				return known.problem, err.Error()
			}
			return known.problem, ""
		}
	}
	return internalError, ""
}

// problemBody is RFC 9457 with two members of our own.
type problemBody struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Detail    string `json:"detail,omitempty"`
	RequestID string `json:"request_id"`
}

// fail answers with the problem of an error, unless an answer is under way.
func (x *exchange) fail(err error) {
	p, detail := explain(err)
	if x.status != 0 {
		return
	}
	h := x.Header()
	h.Set("Content-Type", "application/problem+json; charset=utf-8")
	h.Set("Cache-Control", "private, no-store")
	switch p.status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", challenge(p))
	case http.StatusServiceUnavailable:
		// Spread out, so that clients who failed together do not return together.
		h.Set("Retry-After", strconv.Itoa(1+rand.IntN(3)))
	}
	body, err := json.Marshal(problemBody{
		Type: p.urn(), Title: p.title, Status: p.status,
		Code: p.code, Detail: detail, RequestID: x.id,
	})
	if err != nil {
		panic(err) // strings and a number
	}
	x.WriteHeader(p.status)
	_, _ = x.Write(append(body, '\n'))
}

// challenge is the WWW-Authenticate of RFC 6750, 3.
func challenge(p problem) string {
	if p == invalidToken {
		return `Bearer realm="likewise", error="invalid_token"`
	}
	return `Bearer realm="likewise"`
}

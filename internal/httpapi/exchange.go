package httpapi

import (
	"crypto/rand"
	"net/http"
	"strconv"

	"likewise/internal/auth"
	"likewise/internal/like"
)

// exchange is one request's answer and what the layers tell each other about it.
// It is the ResponseWriter that every layer inside observe sees.
type exchange struct {
	http.ResponseWriter
	id       string // request id
	status   int    // 0 until the answer starts
	route    *route // nil until one matches
	known    bool   // the request has a verified token
	identity auth.Identity
}

// viewer is the user whom the token names, or "" without a token.
func (x *exchange) viewer() like.User { return x.identity.User }

// WriteHeader notes the status. Informational answers pass through.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= 200 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write starts a 200 answer when none was started.
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	return x.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// answer sends a JSON body that is complete in memory.
func (x *exchange) answer(body []byte) error {
	x.send(http.StatusOK, body)
	return nil
}

func (x *exchange) send(status int, body []byte) {
	h := x.Header()
	h["Content-Type"] = jsonContentType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.WriteHeader(status)
	_, _ = x.Write(body) // a client that went away is not our failure
}

// Header values are shared between answers: nobody changes them.
var jsonContentType = []string{"application/json; charset=utf-8"}

const maxRequestIDBytes = 64

// requestID is the caller's X-Request-Id when that is safe to log and to echo,
// else a new one.
func requestID(r *http.Request) string {
	values := r.Header["X-Request-Id"]
	if len(values) != 1 || values[0] == "" || len(values[0]) > maxRequestIDBytes {
		return rand.Text()
	}
	for _, c := range []byte(values[0]) {
		alnum := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !alnum && c != '-' && c != '_' && c != '.' && c != ':' {
			return rand.Text()
		}
	}
	return values[0]
}

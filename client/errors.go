package client

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is a request that the server answered, but not with success.
type Error struct {
	Status    int    // of HTTP
	Code      string // stable, such as "rate_limited"; "" when the answer is not of likewise
	Title     string // for people
	Detail    string // for people; may be empty
	RequestID string // under which the server logged it
	// RetryAfter is how long the server asks to wait; 0 when it does not say.
	RetryAfter time.Duration
}

// Error says what the server said.
func (e *Error) Error() string {
	parts := []string{strconv.Itoa(e.Status)}
	for _, part := range []string{e.Code, e.Title, e.Detail} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, ": ")
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// refusal reads the error that an answer is.
func refusal(res *http.Response, body []byte) *Error {
	e := &Error{Status: res.StatusCode, RequestID: res.Header.Get("X-Request-Id"), RetryAfter: retryAfter(res.Header)}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
		var p struct{ Code, Title, Detail string }
		if json.Unmarshal(body, &p) == nil {
			e.Code, e.Title, e.Detail = p.Code, p.Title, p.Detail
		}
	}
	if e.Title == "" {
		e.Title = http.StatusText(e.Status)
	}
	return e
}

// maxRetryAfter keeps what a header says within the range of a Duration.
const maxRetryAfter = 365 * 24 * time.Hour

// retryAfter reads whole seconds or a date; both are allowed, and proxies send dates.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, time.Until(at)), maxRetryAfter)
	}
	return 0
}

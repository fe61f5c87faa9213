package transfer

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"likewise/internal/like"
)

// newServer answers with the handler, and leaves no connection behind.
func newServer(t *testing.T, h http.HandlerFunc) *Remote {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
	})
	return &Remote{URL: server.URL, Token: "t", RetryFor: 10 * time.Second}
}

func answerProblem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"code":"`+code+`","title":"No","detail":"because","status":`+strconv.Itoa(status)+`}`)
}

var oneCommand = []like.Command{{Item: like.Item{Collection: "posts", ID: "1"}, User: "ann", Op: like.OpLike, At: 1_700_000_000_000_000}}

func TestBatchSendsCommands(t *testing.T) {
	var body, token string
	r := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body, token = r.Method+" "+r.URL.Path+" "+string(text), r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"results":[{"liked":true,"count":1}]}`)
	})
	if err := r.Batch(t.Context(), oneCommand); err != nil {
		t.Fatal(err)
	}
	want := `POST /v1/likes:batch {"commands":[{"op":"like","collection":"posts","id":"1","user":"ann","liked_at":"2023-11-14T22:13:20Z"}]}`
	if body != want || token != "Bearer t" {
		t.Errorf("sent %s with %q, want %s", body, token, want)
	}
}

func TestRetries(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first func(w http.ResponseWriter)
		kind  error // nil when the second attempt must be made
	}{
		{"busy", func(w http.ResponseWriter) { answerProblem(w, 503, "overloaded") }, nil},
		{"limited", func(w http.ResponseWriter) { answerProblem(w, 429, "rate_limited") }, nil},
		{"bad gateway", func(w http.ResponseWriter) { w.WriteHeader(502) }, nil},
		{"broken connection", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, nil},
		{"answer cut off", func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"results":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, nil},
		{"invalid", func(w http.ResponseWriter) { answerProblem(w, 400, "invalid_request") }, like.ErrInvalid},
		{"too large", func(w http.ResponseWriter) { answerProblem(w, 413, "body_too_large") }, like.ErrInvalid},
		{"not likewise", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "hello") }, like.ErrCorrupt},
		{"too few results", func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"results":[]}`) }, like.ErrCorrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int64
			r := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
				if calls.Add(1) == 1 {
					tc.first(w)
					return
				}
				_, _ = io.WriteString(w, `{"results":[{}]}`)
			})
			err := r.Batch(t.Context(), oneCommand)
			if tc.kind == nil && (err != nil || calls.Load() != 2) {
				t.Errorf("error %v after %d calls, want success after 2", err, calls.Load())
			}
			if tc.kind != nil && (!errors.Is(err, tc.kind) || calls.Load() != 1) {
				t.Errorf("error %v after %d calls, want %v after 1", err, calls.Load(), tc.kind)
			}
		})
	}
}

func TestRefusedTokenSaysWhatToDo(t *testing.T) {
	r := newServer(t, func(w http.ResponseWriter, _ *http.Request) { answerProblem(w, 401, "invalid_token") })
	err := r.Batch(t.Context(), oneCommand)
	if p, ok := errors.AsType[*Problem](err); !ok || p.Code != "invalid_token" || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("error %v", err)
	}
	if errors.Is(err, like.ErrInvalid) || errors.Is(err, like.ErrUnavailable) {
		t.Errorf("%v would be halved or repeated", err)
	}
}

func TestRetryGivesUpAndHonoursRetryAfter(t *testing.T) {
	var calls atomic.Int64
	r := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Retry-After", "3600")
		answerProblem(w, 503, "unavailable")
	})
	err := r.Batch(t.Context(), oneCommand)
	if !errors.Is(err, like.ErrUnavailable) || calls.Load() != 1 {
		t.Errorf("error %v after %d calls; the next would have been due too late", err, calls.Load())
	}
}

func TestNobodyThere(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	r := Remote{URL: server.URL}
	if err := r.Call(t.Context(), "GET", "/readyz", nil, nil); !errors.Is(err, like.ErrUnavailable) || !strings.Contains(err.Error(), "likewise serve") {
		t.Errorf("error %v", err)
	}
}

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"likewise/internal/auth"
	"likewise/internal/like"
)

func allProblems() []problem {
	return []problem{
		invalidRequest, invalidPath, invalidQuery, invalidBody, invalidCursor, tooMany, userNotAccepted,
		missingToken, invalidToken, missingScope, notFound, methodNotAllowed, bodyTimeout, bodyTooLarge,
		uriTooLong, unsupportedMedia, headersTooLarge, rateLimited, clientGone, internalError, unsupported,
		overloaded, unavailable, shuttingDown, originNotAllowed, tooManyStreams,
	}
}

func TestProblemsAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range allProblems() {
		if seen[p.code] || p.title == "" || p.status < 400 || p.status > 599 {
			t.Errorf("%+v", p)
		}
		seen[p.code] = true
	}
}

// TestEveryKindHasAProblem proves the table total, wrapped or not.
func TestEveryKindHasAProblem(t *testing.T) {
	for _, kind := range append(like.Kinds(), auth.ErrUnauthenticated, errors.ErrUnsupported, context.Canceled, context.DeadlineExceeded) {
		found := false
		for _, known := range problemOfKind {
			found = found || known.kind == kind
		}
		if !found {
			t.Errorf("%v has no row", kind)
		}
	}
	for _, tt := range []struct {
		err    error
		want   problem
		detail string
	}{
		{fmt.Errorf("%w: id is empty", like.ErrInvalid), invalidRequest, "invalid: id is empty"},
		{fmt.Errorf("pebble at /data: %w", like.ErrUnavailable), unavailable, ""},
		{fmt.Errorf("key 0x17: %w", like.ErrCorrupt), internalError, ""},
		{errors.New("pgx: password is hunter2"), internalError, ""},
		{fmt.Errorf("wrapped: %w", refuse(tooMany, "more than %d", 3)), tooMany, "more than 3"},
	} {
		if p, detail := explain(tt.err); p != tt.want || detail != tt.detail {
			t.Errorf("%v: %s %q, want %s %q", tt.err, p.code, detail, tt.want.code, tt.detail)
		}
	}
}

func TestFailuresOfTheLedger(t *testing.T) {
	once(t, func(s *service) {
		for _, tt := range []struct {
			err    error
			status int
			code   string
		}{
			{like.ErrOverloaded, 503, "overloaded"},
			{like.ErrUnavailable, 503, "unavailable"},
			{like.ErrClosed, 503, "shutting_down"},
			{like.ErrCorrupt, 500, "internal"},
			{errors.New("secret"), 500, "internal"},
			{context.DeadlineExceeded, 503, "unavailable"},
		} {
			time.Sleep(shedFor) // what was refused before no longer counts
			s.faults.set(fmt.Errorf("store /var/secret: %w", tt.err))
			for _, a := range []answer{
				s.put("u1", "posts/1"), s.delete("u1", "posts/1"), s.get("", "/v1/posts/1/like"),
				s.get("", "/v1/posts/1/likers"), s.get("", "/v1/likes/counts?posts=1"),
				s.post(tokenOf("b", auth.ScopeWriteAny), "/v1/likes:batch", oneCommand),
				s.do(call{method: http.MethodPost, target: "/admin/v1/users/u1/erase", token: tokenOf("o", auth.ScopeAdmin), admin: true}),
			} {
				if p := a.problem(tt.status, tt.code); strings.Contains(a.Body.String(), "secret") || p.Detail != "" {
					t.Errorf("the caller learns %s", a.Body)
				}
				after, err := strconv.Atoi(a.Header().Get("Retry-After"))
				if tt.status == 503 && (err != nil || after < 1 || after > 3) {
					t.Errorf("Retry-After %q", a.Header().Get("Retry-After"))
				}
			}
		}
		if log := s.log.String(); !strings.Contains(log, "secret") || !strings.Contains(log, "PUT /v1/{collection}/{id}/like") {
			t.Errorf("the log does not say what happened: %s", log)
		}
	})
}

func TestClientThatWentAwayIsNoFailure(t *testing.T) {
	once(t, func(s *service) {
		s.faults.set(context.Canceled)
		w := s.raw(call{method: http.MethodPut, target: "/v1/posts/1/like", token: tokenOf("u1")})
		if w.Code != 499 || s.log.String() != "" {
			t.Errorf("%d, log %q", w.Code, s.log.String())
		}
	})
}

func TestStoreFailuresDoNotFloodTheLog(t *testing.T) {
	once(t, func(s *service) {
		s.faults.set(like.ErrOverloaded)
		for range 100 {
			s.put("u1", "posts/1")
		}
		if n := strings.Count(s.log.String(), "\n"); n != 1 {
			t.Errorf("%d lines within one second, want 1", n)
		}
	})
}

func TestPanicIsAProblem(t *testing.T) {
	once(t, func(s *service) {
		s.faults.boom = "a bug"
		s.put("u1", "posts/1").problem(500, "internal")
		if log := s.log.String(); !strings.Contains(log, "a bug") || !strings.Contains(log, "goroutine") {
			t.Errorf("log: %s", log)
		}
		if n := s.metric("likewise_http_panics_total"); n != 1 {
			t.Errorf("panics counted: %v", n)
		}
		s.faults.boom = nil
		s.put("u1", "posts/1").want(200, `{"liked":true,"count":1}`)
	})
}

package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// script answers requests in order; the last answer is repeated.
type script struct {
	answers []answer
	sent    []*http.Request
	at      []time.Duration // when, after the first
	begin   time.Time
}

type answer struct {
	status int // 0 is a broken connection, -1 no answer at all
	header http.Header
	body   string
}

var errRefused = errors.New("connection refused")

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.begin.IsZero() {
		s.begin = time.Now()
	}
	a := s.answers[min(len(s.sent), len(s.answers)-1)]
	s.sent, s.at = append(s.sent, r), append(s.at, time.Since(s.begin))
	switch a.status {
	case 0:
		return nil, errRefused
	case -1:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	h := a.header
	if h == nil {
		h = http.Header{}
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

func newScripted(t *testing.T, s *script, o Options) *Client {
	t.Helper()
	o.HTTP = &http.Client{Transport: s}
	c, err := New("http://likes.test", o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ok() answer { return answer{200, nil, `{"liked":true,"count":1}`} }

func busy(seconds int) answer {
	return answer{503, http.Header{"Retry-After": {strconv.Itoa(seconds)}}, ""}
}

func TestRepeats(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []answer
		o       Options
		sent    int
		least   time.Duration // until the last attempt
		most    time.Duration
		status  int // of the error; 0 is none
	}{
		{name: "first answer", answers: []answer{ok()}, sent: 1},
		{name: "broken connection", answers: []answer{{}, ok()}, sent: 2, least: 50 * time.Millisecond, most: 100 * time.Millisecond},
		{name: "no answer in time", answers: []answer{{status: -1}, ok()}, sent: 2, least: 10 * time.Second, most: 11 * time.Second},
		{name: "backoff", answers: []answer{{status: 502}, {status: 504}, {status: 408}, ok()}, sent: 4, least: 350 * time.Millisecond, most: 700 * time.Millisecond},
		{name: "as long as the server says", answers: []answer{busy(3), ok()}, sent: 2, least: 3 * time.Second, most: 3200 * time.Millisecond},
		{name: "rate limit", answers: []answer{{429, http.Header{"Retry-After": {"1"}}, ""}, ok()}, sent: 2, least: time.Second, most: 1200 * time.Millisecond},
		{name: "longer than may be waited", answers: []answer{busy(11), ok()}, sent: 1, status: 503},
		{name: "gives up", answers: []answer{busy(1)}, sent: 4, least: 3 * time.Second, most: 4 * time.Second, status: 503},
		{name: "never repeats", answers: []answer{busy(1)}, o: Options{Attempts: 1}, sent: 1, status: 503},
		{name: "refusal", answers: []answer{{status: 403}}, sent: 1, status: 403},
		{name: "bug of the server", answers: []answer{{status: 500}}, sent: 1, status: 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: tt.answers}
				_, err := newScripted(t, s, tt.o).Like(t.Context(), Item{"posts", "1"})
				status := 0
				if e, ok := errors.AsType[*Error](err); ok {
					status = e.Status
				} else if err != nil {
					t.Fatal(err)
				}
				last := s.at[len(s.at)-1]
				if status != tt.status || len(s.sent) != tt.sent || last < tt.least || last > tt.most {
					t.Errorf("%d attempts until %v, error %v", len(s.sent), last, err)
				}
			})
		})
	}
}

func TestWaitThatOutlivesTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{busy(3)}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := newScripted(t, s, Options{}).Like(ctx, Item{"posts", "1"})
		if e, ok := errors.AsType[*Error](err); !ok || e.RetryAfter != 3*time.Second || time.Since(begin) != 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

func TestCallerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := errors.New("left")
		for _, a := range []answer{busy(3), {status: -1}} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(left) })
			_, err := newScripted(t, &script{answers: []answer{a}}, Options{}).Like(ctx, Item{"posts", "1"})
			if !errors.Is(err, left) {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{{status: 503}}}
		c := newScripted(t, s, Options{})
		const requests = 200
		for range requests {
			if _, err := c.Like(t.Context(), Item{"posts", "1"}); err == nil {
				t.Fatal("it succeeded")
			}
		}
		// The reserve, and a tenth of the requests, give or take the one under way.
		if repeats := len(s.sent) - requests; repeats < requests/10+8 || repeats > requests/10+budgetReserve {
			t.Errorf("%d repeats of %d requests", repeats, requests)
		}
	})
}

func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{busy(1), ok()}}
		asked := 0
		c := newScripted(t, s, Options{Token: func(context.Context) (string, error) {
			asked++
			return "token" + strconv.Itoa(asked), nil
		}})
		if _, err := c.Like(t.Context(), Item{"posts", "1"}); err != nil {
			t.Fatal(err)
		}
		for i, r := range s.sent {
			if want := "Bearer token" + strconv.Itoa(i+1); r.Header.Get("Authorization") != want {
				t.Errorf("attempt %d has %q", i+1, r.Header.Get("Authorization"))
			}
		}
		broken := errors.New("no token today")
		c = newScripted(t, s, Options{Token: func(context.Context) (string, error) { return "", broken }})
		if _, err := c.Like(t.Context(), Item{"posts", "1"}); !errors.Is(err, broken) || len(s.sent) != 2 {
			t.Errorf("%v after %d requests", err, len(s.sent)-2)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for text, want := range map[string]time.Duration{
			"":            0,
			"3":           3 * time.Second,
			"-3":          0,
			"soon":        0,
			"4294967295":  maxRetryAfter,
			"99999999999": 0,
			time.Now().Add(time.Minute).UTC().Format(http.TimeFormat):  time.Minute,
			time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat): 0,
		} {
			if got := retryAfter(http.Header{"Retry-After": {text}}); got != want {
				t.Errorf("%q: %v, want %v", text, got, want)
			}
		}
	})
}

func TestWrongAnswers(t *testing.T) {
	for name, a := range map[string]answer{
		"not JSON": {200, nil, "<html>"},
		"too long": {200, nil, strings.Repeat(" ", maxAnswer+1)},
	} {
		if _, err := newScripted(t, &script{answers: []answer{a}}, Options{}).Get(t.Context(), Item{"posts", "1"}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	foreign := answer{403, http.Header{"Content-Type": {"text/html"}}, "<html>"}
	_, err := newScripted(t, &script{answers: []answer{foreign}}, Options{}).Get(t.Context(), Item{"posts", "1"})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != "" || e.Title != "Forbidden" {
		t.Errorf("%v", err)
	}
	short := answer{200, nil, `{"counts":[]}`}
	if _, err := newScripted(t, &script{answers: []answer{short}}, Options{}).Counts(t.Context(), Item{"posts", "1"}); err == nil {
		t.Error("a page without its entry is accepted")
	}
}

func TestNew(t *testing.T) {
	for _, base := range []string{"", "likes.test", "ftp://likes.test", "http://", "http://likes.test?a=b", "http://likes.test#a", "http://%zz"} {
		if _, err := New(base, Options{}); err == nil {
			t.Errorf("%q is accepted", base)
		}
	}
	if _, err := New("http://likes.test", Options{Attempts: -1}); err == nil {
		t.Error("-1 attempts are accepted")
	}
	c, err := New("https://likes.test/api/", Options{})
	if err != nil || c.base != "https://likes.test/api" {
		t.Errorf("%v, %v", c, err)
	}
}

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	maxAnswer = 8 << 20 // bytes of an answer

	firstBackoff = 100 * time.Millisecond

	budgetShare   = 0.1 // of all requests may be repeats
	budgetReserve = 10  // repeats beyond that, when there were none for a while
)

// budget bounds the repeats of all requests of a client together.
type budget struct {
	mu   sync.Mutex
	left float64 // guarded by mu
}

func newBudget() budget { return budget{left: budgetReserve} }

// earn notes a request that is sent for the first time.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(budgetReserve, b.left+budgetShare)
}

// spend reports whether a request may be repeated.
func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A sum of tenths is not exactly one.
	if b.left < 1-1e-9 {
		return false
	}
	b.left--
	return true
}

// ask sends a request with a JSON body, unless that is nil, and decodes its answer.
func ask[T any](ctx context.Context, c *Client, method, path string, question any) (answer T, err error) {
	var body []byte
	if question != nil {
		if body, err = json.Marshal(question); err != nil {
			return answer, err
		}
	}
	text, err := c.send(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, fmt.Errorf("answer to %s %s: %w", method, path, err)
	}
	return answer, nil
}

// send repeats a request until it is answered for good or may not be repeated.
func (c *Client) send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	c.budget.earn()
	for attempt := 1; ; attempt++ {
		text, err := c.attempt(ctx, method, path, body)
		if err == nil || !passing(err) {
			return text, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		wait := backoff(attempt, c.o.MaxWait)
		if e, ok := errors.AsType[*Error](err); ok && e.RetryAfter > 0 {
			if e.RetryAfter > c.o.MaxWait {
				return nil, err
			}
			wait = e.RetryAfter + rand.N(wait)
		}
		// A wait that outlives the caller is spared.
		deadline, bounded := ctx.Deadline()
		if attempt >= c.o.Attempts || bounded && time.Until(deadline) < wait || !c.budget.spend() {
			return nil, err
		}
		if !sleep(ctx, wait) {
			return nil, context.Cause(ctx)
		}
	}
}

// failure is an attempt that brought no answer, for a reason that may pass.
type failure struct{ error }

// Unwrap lets the cause be found.
func (f failure) Unwrap() error { return f.error }

func passing(err error) bool {
	if _, ok := errors.AsType[failure](err); ok {
		return true
	}
	e, ok := errors.AsType[*Error](err)
	return ok && e.Temporary()
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	res, err := c.open(ctx, method, path, body, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, failure{fmt.Errorf("%s %s: %w", method, path, err)}
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("%s %s: the answer has more than %d bytes", method, path, maxAnswer)
	}
	return text, nil
}

const maxProblem = 64 << 10 // bytes of a refusal

// open sends a request and returns its answer if that is a 200; the caller closes
// its body.
func (c *Client) open(ctx context.Context, method, path string, body []byte, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.o.Token != nil {
		token, err := c.o.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("token: %w", err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	res, err := c.o.HTTP.Do(req)
	if err != nil {
		return nil, failure{err}
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxProblem)) // the status says enough
	return nil, refusal(res, text)
}

// backoff is the wait before the next attempt: it doubles, within limit, and is
// spread so that clients who failed together do not return together.
func backoff(attempt int, limit time.Duration) time.Duration {
	d := min(firstBackoff<<min(attempt-1, 16), limit)
	return d/2 + rand.N(d/2+1)
}

// sleep waits and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

package transfer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"likewise/internal/like"
)

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second

	maxAnswerBytes  = 4 << 20
	maxProblemBytes = 64 << 10
)

// Remote is a running server. Safe for concurrent use.
type Remote struct {
	URL   string // of the listener that is spoken to, without a path
	Token string // "" sends none
	// RetryFor is how long a request is repeated while the server is away or too
	// busy; 0 tries once.
	RetryFor time.Duration
	// Timeout bounds one attempt of a Call; 0 waits.
	Timeout time.Duration
	// Client makes the connections; nil is http.DefaultClient.
	Client *http.Client
}

// Problem is an answer other than 2xx. By errors.Is it is [like.ErrInvalid] for a
// request that is refused for what it says, [like.ErrUnavailable] for one that may
// succeed later, and [errors.ErrUnsupported] for one that the server's store cannot
// serve.
type Problem struct {
	Status int
	Code   string // stable, "" when the answer was not likewise's own
	Detail string
	after  time.Duration
}

// Error says what was answered, and what to do about refused tokens.
func (p *Problem) Error() string {
	text := fmt.Sprintf("the server answered %d: %s", p.Status, cmp.Or(p.Detail, http.StatusText(p.Status)))
	switch p.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		text += "; give a good token with --token, or name the server's directory with --data-dir so that one can be made"
	case http.StatusNotFound:
		text += "; is the URL that of a likewise server, and of the right one of its two listeners?"
	}
	return text
}

// Unwrap returns the kind of the failure.
func (p *Problem) Unwrap() error {
	switch {
	case p.Status == http.StatusBadRequest, p.Status == http.StatusRequestEntityTooLarge:
		return like.ErrInvalid
	case p.Status == http.StatusRequestTimeout, p.Status == http.StatusTooManyRequests,
		p.Status >= 500 && p.Status != http.StatusNotImplemented:
		return like.ErrUnavailable
	case p.Status == http.StatusNotImplemented:
		return errors.ErrUnsupported
	}
	return nil
}

// Batch is a [Send] to the server. Commands are idempotent, so that it repeats
// what got no answer.
func (r *Remote) Batch(ctx context.Context, cmds []like.Command) error {
	_, err := r.batch(ctx, "/v1/likes:batch", cmds)
	return err
}

// result is the answer to one command of a batch.
type result struct {
	Liked bool
	Count int64
}

func (r *Remote) batch(ctx context.Context, path string, cmds []like.Command) ([]result, error) {
	type command struct {
		Op string `json:"op"`
		jsonLine
	}
	body := struct {
		Commands []command `json:"commands"`
	}{make([]command, len(cmds))}
	for i, c := range cmds {
		body.Commands[i] = command{c.Op.String(), lineOf(c.Item, c.User, c.At)}
	}
	var answer struct {
		Results []result
	}
	if err := r.Call(ctx, http.MethodPost, path, body, &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(cmds) {
		return nil, fmt.Errorf("%w: %d commands got %d results", like.ErrCorrupt, len(cmds), len(answer.Results))
	}
	return answer.Results, nil
}

// Call sends one request that may be repeated, and decodes the answer into out; a
// nil body sends none, a nil out ignores the answer.
func (r *Remote) Call(ctx context.Context, method, path string, body, out any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	return r.retry(ctx, func(ctx context.Context) error {
		if r.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, r.Timeout)
			defer cancel()
		}
		answer, err := r.open(ctx, method, path, text)
		if err != nil {
			return err
		}
		defer answer.Close()
		read, err := io.ReadAll(io.LimitReader(answer, maxAnswerBytes))
		if err != nil {
			return fmt.Errorf("%w: the answer of %s broke off: %w", like.ErrUnavailable, r.URL, err)
		}
		if out == nil {
			return nil
		}
		if err := json.Unmarshal(read, out); err != nil {
			return fmt.Errorf("%w: the answer of %s is not what likewise sends: %w", like.ErrCorrupt, r.URL, err)
		}
		return nil
	})
}

// Stream sends one request whose answer may be long and slow. The caller closes
// the answer. Only the beginning is repeated.
func (r *Remote) Stream(ctx context.Context, method, path string) (answer io.ReadCloser, err error) {
	err = r.retry(ctx, func(ctx context.Context) error {
		answer, err = r.open(ctx, method, path, nil)
		return err
	})
	return answer, err
}

// open sends one request once and returns the body of a 2xx answer.
func (r *Remote) open(ctx context.Context, method, path string, body []byte) (io.ReadCloser, error) {
	if body == nil {
		return r.send(ctx, method, path, "", http.NoBody)
	}
	return r.send(ctx, method, path, "application/json", bytes.NewReader(body))
}

// send is open with a body that may be under way still.
func (r *Remote) send(ctx context.Context, method, path, media string, body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(r.URL, "/")+path, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", like.ErrInvalid, err)
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	if r.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.Token)
	}
	res, err := cmp.Or(r.Client, http.DefaultClient).Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; is `likewise serve` running there?", like.ErrUnavailable, err)
	}
	if res.StatusCode/100 == 2 {
		return res.Body, nil
	}
	defer res.Body.Close()
	return nil, problemOf(res)
}

func problemOf(res *http.Response) *Problem {
	p := &Problem{Status: res.StatusCode}
	var document struct{ Code, Title, Detail string }
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxProblemBytes))
	if json.Unmarshal(text, &document) == nil && document.Code != "" {
		p.Code, p.Detail = document.Code, cmp.Or(document.Detail, document.Title)
	} else if len(text) < 1<<10 {
		p.Detail = strings.TrimSpace(string(text))
	}
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		p.after = time.Duration(seconds) * time.Second
	}
	return p
}

// retry calls try until it succeeds, fails for good, or RetryFor has passed. It
// waits twice as long each time, with jitter, and at least as long as asked for.
func (r *Remote) retry(ctx context.Context, try func(context.Context) error) error {
	begin, pause := time.Now(), firstPause
	for {
		err := try(ctx)
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, like.ErrUnavailable) {
			return err
		}
		wait := pause/2 + rand.N(pause)
		if p, ok := errors.AsType[*Problem](err); ok {
			wait = max(wait, p.after)
		}
		pause = min(2*pause, longestPause)
		if time.Since(begin)+wait > r.RetryFor {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

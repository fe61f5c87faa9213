package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// silence is how long a stream may say nothing before it is taken for dead; the
	// server says something at least every 15 s.
	silence     = 45 * time.Second
	firstReturn = time.Second      // before a stream is opened again, unless the server says when
	lastReturn  = 30 * time.Second // the longest wait while it cannot be opened
	maxRetry    = 5 * time.Minute  // the longest wait that a stream may ask for
)

// Stream follows the counts of up to 50 items: first those of all items, then what
// changes, of which only the newest is owed. Of one item no older count follows a newer one.
// When the connection is lost the stream is opened again where it stood, after the
// time that the server asked for. It ends, with an error as the last element, only
// when ctx is done or the server refuses for good. Leaving the loop closes it.
//
// Ids with a comma cannot be named in a stream.
func (c *Client) Stream(ctx context.Context, items []Item) iter.Seq2[Count, error] {
	return func(yield func(Count, error) bool) {
		query, err := streamQuery(items)
		if err != nil {
			yield(Count{}, err)
			return
		}
		s := &stream{c: c, path: "/v1/likes/stream?" + query, wait: firstReturn, seen: map[Item]uint64{}}
		for failures := 0; ; failures++ {
			open, err := s.follow(ctx, yield)
			switch {
			case err == nil:
				return // the loop was left
			case ctx.Err() != nil:
				yield(Count{}, context.Cause(ctx))
				return
			case !passing(err):
				yield(Count{}, err)
				return
			case open:
				failures = 0
			}
			if !sleep(ctx, s.pause(err, failures)) {
				yield(Count{}, context.Cause(ctx))
				return
			}
		}
	}
}

// streamQuery is posts=1,2&games=7.
func streamQuery(items []Item) (string, error) {
	ids := map[string][]string{}
	for _, item := range items {
		if strings.Contains(item.ID, ",") {
			return "", fmt.Errorf("item %s: an id with a comma cannot be named in a stream", item)
		}
		ids[item.Collection] = append(ids[item.Collection], item.ID)
	}
	query := url.Values{}
	for collection, list := range ids {
		query.Set(collection, strings.Join(list, ","))
	}
	return query.Encode(), nil
}

// stream is where a reader stands, over all connections.
type stream struct {
	c    *Client
	path string
	id   string        // of the last event
	wait time.Duration // before the next connection
	seen map[Item]uint64
}

// follow reads one connection to its end, and reports whether it was open. No
// error means that the loop was left.
func (s *stream) follow(ctx context.Context, yield func(Count, error) bool) (open bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := time.AfterFunc(silence, cancel)
	defer watch.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if s.id != "" {
		header.Set("Last-Event-ID", s.id)
	}
	res, err := s.c.open(ctx, http.MethodGet, s.path, nil, header)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return false, fmt.Errorf("the answer is %q, not a stream of events", kind)
	}
	for e, err := range events(res.Body, s.id, func() { watch.Reset(silence) }) {
		if err != nil {
			return true, failure{fmt.Errorf("stream: %w", err)}
		}
		if more, err := s.take(e, yield); err != nil || !more {
			return true, err
		}
	}
	return true, nil
}

// take yields what an event says that is new, and reports whether the loop goes on.
func (s *stream) take(e event, yield func(Count, error) bool) (bool, error) {
	if e.retry >= 0 {
		s.wait = min(e.retry, maxRetry)
	}
	if e.name != "counts" {
		return true, nil
	}
	var frame struct{ Counts []Count }
	if err := json.Unmarshal([]byte(e.data), &frame); err != nil {
		return false, fmt.Errorf("stream: %w", err)
	}
	for _, count := range frame.Counts {
		if last, known := s.seen[count.Item]; known && count.Version <= last {
			continue
		}
		s.seen[count.Item] = count.Version
		if !yield(count, nil) {
			return false, nil
		}
	}
	s.id = e.id
	return true, nil
}

// pause is the wait before the next connection.
func (s *stream) pause(err error, failures int) time.Duration {
	wait := min(s.wait<<min(failures, 8), max(s.wait, lastReturn))
	if e, ok := errors.AsType[*Error](err); ok {
		wait = max(wait, e.RetryAfter)
	}
	return wait + rand.N(wait/4+1)
}

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options say how a client works. The zero value is ready for reading without a
// token.
type Options struct {
	// Token returns the bearer token of a request, "" for none. It is called before
	// every attempt, by many goroutines at once, and keeps a token until shortly
	// before it expires. Its error ends the request. nil is no token.
	Token func(context.Context) (string, error)
	// HTTP sends the requests; nil is [http.DefaultClient]. A Timeout of it would
	// end live streams too; use the one below.
	HTTP *http.Client
	// Timeout bounds one attempt; 0 is 10 s.
	Timeout time.Duration
	// Attempts bounds how often one request is sent; 0 is 4, 1 never repeats.
	Attempts int
	// MaxWait is the longest wait between two attempts; 0 is 10 s. When the server
	// asks for more, its refusal is returned at once.
	MaxWait time.Duration
}

// Client speaks to one server. It is safe for concurrent use and has no goroutine
// of its own.
type Client struct {
	base   string // ends without a slash
	o      Options
	budget budget
}

// New returns a client of the server at baseURL, such as "https://likes.example.com".
func New(baseURL string, o Options) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("base URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("base URL %q must be http:// or https:// with a host, and without a query", u.Redacted())
	}
	if o.Timeout < 0 || o.Attempts < 0 || o.MaxWait < 0 {
		return nil, errors.New("options: times and attempts cannot be negative")
	}
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	o.Timeout = orDefault(o.Timeout, 10*time.Second)
	o.MaxWait = orDefault(o.MaxWait, 10*time.Second)
	o.Attempts = orDefault(o.Attempts, 4)
	return &Client{base: strings.TrimRight(u.String(), "/"), o: o, budget: newBudget()}, nil
}

func orDefault[T comparable](v, byDefault T) T {
	var zero T
	if v == zero {
		return byDefault
	}
	return v
}

// Item is a thing that can be liked: {"posts", "42"}.
type Item struct {
	Collection string `json:"collection"`
	ID         string `json:"id"`
}

// String returns collection/id.
func (i Item) String() string { return i.Collection + "/" + i.ID }

func (i Item) path() string {
	return "/v1/" + url.PathEscape(i.Collection) + "/" + url.PathEscape(i.ID)
}

// Outcome is the caller's state of an item and its count, which includes the
// caller's own like.
type Outcome struct {
	Liked bool  `json:"liked"`
	Count int64 `json:"count"`
	// AgeMS is 0 for a fresh count. Otherwise the server could not read its store
	// and the count was last known to be right this many milliseconds ago.
	AgeMS int64 `json:"age_ms,omitempty"`
}

// Like likes an item. It is durable when it returns; a repeat changes nothing.
func (c *Client) Like(ctx context.Context, item Item) (Outcome, error) {
	return ask[Outcome](ctx, c, http.MethodPut, item.path()+"/like", nil)
}

// Unlike takes a like back. Unliking what is not liked changes nothing.
func (c *Client) Unlike(ctx context.Context, item Item) (Outcome, error) {
	return ask[Outcome](ctx, c, http.MethodDelete, item.path()+"/like", nil)
}

// Get returns the caller's state and the count of an item. An unknown item has
// count 0; without a token nothing is liked.
func (c *Client) Get(ctx context.Context, item Item) (Outcome, error) {
	return ask[Outcome](ctx, c, http.MethodGet, item.path()+"/like", nil)
}

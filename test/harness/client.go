package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Client speaks to the nodes of one deployment, a different one on each
// request. Safe for concurrent use; all users share its connections, so that
// thousands of users cost no more sockets than requests under way.
type Client struct {
	urls   []string // public base URLs
	admin  []string // admin base URLs
	keys   *Keys
	http   *http.Client
	turn   atomic.Uint64
	status *[6]atomic.Int64 // answers by hundreds; 0 is no answer
}

// NewClient returns a client of the nodes with these base URLs.
func NewClient(urls, admin []string, keys *Keys) *Client {
	return &Client{
		urls: urls, admin: admin, keys: keys, status: new([6]atomic.Int64),
		http: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 1024, IdleConnTimeout: 30 * time.Second},
			Timeout:       time.Minute, // longer than a node takes to refuse, on a slow machine too
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Each returns, for every node, a client of that node alone. It shares connections
// and counted answers with this one.
func (c *Client) Each() []*Client {
	each := make([]*Client, len(c.urls))
	for k := range c.urls {
		each[k] = &Client{urls: c.urls[k : k+1], keys: c.keys, http: c.http, status: c.status}
		if len(c.admin) == len(c.urls) {
			each[k].admin = c.admin[k : k+1]
		}
	}
	return each
}

// Fresh returns a client of the same nodes with connections of its own.
func (c *Client) Fresh() *Client { return NewClient(c.urls, c.admin, c.keys) }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Answers returns how many answers had a status of these hundreds: 2 for 2xx
// and so on, 0 for requests that got no answer.
func (c *Client) Answers(hundreds int) int64 { return c.status[hundreds].Load() }

// Request is one call, as raw as a test wants it.
type Request struct {
	Method string
	Path   string      // escaped, with its query; sent byte for byte
	User   string      // signs a token for this user; empty sends none
	Scope  string      // of that token
	Token  string      // sent as it is, instead of a token for User
	Body   any         // nil, []byte as it is, else encoded as JSON
	Header http.Header // added
	Admin  bool        // to the admin listener
}

// Response is a whole answer.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Problem is an answer other than 2xx, or a 2xx that is not what was promised.
type Problem struct {
	Response
	Method, Path string
	Code         string // stable code of the problem document
	Detail       string
}

// Error names the request and the answer.
func (p *Problem) Error() string {
	return fmt.Sprintf("%s %s: %d %s %s", p.Method, p.Path, p.Status, p.Code, p.Detail)
}

// StatusOf returns the status of an answer other than 2xx, 200 for no error, and
// 0 for a request without an answer.
func StatusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Status
	}
	return 0
}

// Do sends one request and returns the answer whatever its status. An error
// means that no complete answer came, so the request may have happened or not.
func (c *Client) Do(ctx context.Context, r Request) (Response, error) {
	bases := c.urls
	if r.Admin {
		bases = c.admin
	}
	base := bases[c.turn.Add(1)%uint64(len(bases))]
	req, err := c.request(ctx, base, r)
	if err != nil {
		return Response{}, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.status[0].Add(1)
		return Response{}, fmt.Errorf("no answer: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.status[0].Add(1)
		return Response{}, fmt.Errorf("no complete answer: %w", err)
	}
	c.status[res.StatusCode/100].Add(1)
	return Response{Status: res.StatusCode, Header: res.Header, Body: body}, nil
}

func (c *Client) request(ctx context.Context, base string, r Request) (*http.Request, error) {
	body, isJSON, err := encode(r.Body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, base+r.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, r.Header)
	if isJSON && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	switch {
	case r.Token != "":
		req.Header.Set("Authorization", "Bearer "+r.Token)
	case r.User != "":
		req.Header.Set("Authorization", "Bearer "+c.keys.Token(r.User, r.Scope))
	}
	return req, nil
}

func encode(body any) (b []byte, isJSON bool, err error) {
	switch v := body.(type) {
	case nil:
		return nil, false, nil
	case []byte:
		return v, true, nil
	default:
		b, err = json.Marshal(v)
		return b, true, err
	}
}

// call sends one request, wants a 2xx, and decodes its body strictly into out.
func (c *Client) call(ctx context.Context, r Request, out any) error {
	res, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	if res.Status/100 != 2 {
		return problem(r, res)
	}
	if err := Decode(res.Body, out); err != nil {
		return &Problem{Response: res, Method: r.Method, Path: r.Path, Detail: err.Error()}
	}
	return nil
}

// problem reads an answer other than 2xx. Code stays empty when the body is not
// the problem document that every such answer owes.
func problem(r Request, res Response) *Problem {
	p := &Problem{Response: res, Method: r.Method, Path: r.Path, Detail: string(res.Body)}
	var doc struct {
		Type   string `json:"type"`
		Code   string `json:"code"`
		Status int    `json:"status"`
		Title  string `json:"title"`
		Detail string `json:"detail"`
		ID     string `json:"request_id"`
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if kind == "application/problem+json" && json.Unmarshal(res.Body, &doc) == nil && doc.Status == res.Status {
		p.Code, p.Detail = doc.Code, doc.Title+": "+doc.Detail
	}
	return p
}

// ProblemOf reads an answer as the problem document it owes.
func ProblemOf(r Request, res Response) *Problem { return problem(r, res) }

// RetryAfter returns the whole seconds of the Retry-After header, or -1 when it
// is missing or not a whole number.
func (r Response) RetryAfter() int {
	n, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil {
		return -1
	}
	return n
}

// Decode decodes exactly one JSON value without unknown fields.
func Decode(b []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return fmt.Errorf("decode %q: %w", b, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("decode %q: data behind the value", b)
	}
	return nil
}

// Item names what is liked.
type Item struct {
	Collection string `json:"collection"`
	ID         string `json:"id"`
}

// Post returns an item of the collection that the scenarios use.
func Post(id string) Item { return Item{Collection: "posts", ID: id} }

// String returns the item for messages.
func (i Item) String() string { return i.Collection + "/" + i.ID }

// Path returns the item's path, escaped, with one more element.
func (i Item) Path(last string) string {
	return "/v1/" + url.PathEscape(i.Collection) + "/" + url.PathEscape(i.ID) + "/" + last
}

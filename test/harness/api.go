package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// MaxCounts is the documented number of items of one counts call, and MaxPage
// that of entries of one page.
const (
	MaxCounts = 100
	MaxPage   = 100
	MaxBatch  = 1000 // commands of one batch
)

// LikeState answers a like, an unlike and a look at one item.
type LikeState struct {
	Liked bool  `json:"liked"`
	Count int64 `json:"count"`
	AgeMS int64 `json:"age_ms"` // of a count that cannot be read again now; else absent
}

// Count is one entry of a counts answer.
type Count struct {
	Item
	Count     int64    `json:"count"`
	Display   string   `json:"display"`
	AgeMS     int64    `json:"age_ms"`      // of a count that cannot be read again now; else absent
	LikedByMe *bool    `json:"liked_by_me"` // false or absent without a token
	Friends   *Friends `json:"friends"`     // absent unless friends were asked for
}

// Mine reports whether the caller likes the item.
func (c Count) Mine() bool { return c.LikedByMe != nil && *c.LikedByMe }

// Friends says which of the caller's friends like an item.
type Friends struct {
	Count  int64    `json:"count"`
	Sample []string `json:"sample"`
}

// Liker is one entry of a liker list.
type Liker struct {
	User    string    `json:"user"`
	LikedAt time.Time `json:"liked_at"`
}

// LikersPage is one page of a liker list.
type LikersPage struct {
	Likers     []Liker `json:"likers"`
	NextCursor string  `json:"next_cursor"` // empty on the last page
}

// Liked is one entry of what a user likes.
type Liked struct {
	Item
	LikedAt time.Time `json:"liked_at"`
}

// LikedPage is one page of what a user likes.
type LikedPage struct {
	Likes      []Liked `json:"likes"`
	NextCursor string  `json:"next_cursor"`
}

// Command is one line of a batch.
type Command struct {
	Item
	User    string `json:"user"`
	Op      string `json:"op,omitempty"`       // like or unlike
	LikedAt string `json:"liked_at,omitempty"` // RFC 3339, with ScopeImport
}

// Like likes an item as a user.
func (c *Client) Like(ctx context.Context, user string, item Item) (LikeState, error) {
	return c.button(ctx, http.MethodPut, user, item)
}

// Unlike takes a like back.
func (c *Client) Unlike(ctx context.Context, user string, item Item) (LikeState, error) {
	return c.button(ctx, http.MethodDelete, user, item)
}

// State returns the caller's state of one item and its count.
func (c *Client) State(ctx context.Context, user string, item Item) (LikeState, error) {
	return c.button(ctx, http.MethodGet, user, item)
}

func (c *Client) button(ctx context.Context, method, user string, item Item) (LikeState, error) {
	var out LikeState
	r := Request{Method: method, Path: item.Path("like"), User: user}
	if err := c.call(ctx, r, &out); err != nil {
		return out, err
	}
	if method != http.MethodGet && out.Liked != (method == http.MethodPut) {
		return out, fmt.Errorf("%s %s as %s answered liked=%v", method, item, user, out.Liked)
	}
	if out.Count < 0 || out.Liked && out.Count < 1 {
		return out, fmt.Errorf("%s %s as %s answered count %d, liked=%v", method, item, user, out.Count, out.Liked)
	}
	return out, nil
}

// Counts asks for up to MaxCounts items of one call, as a user or, with an empty
// name, as nobody. It checks that one entry per item came, in request order,
// with a state when somebody asked and no true one when nobody did.
func (c *Client) Counts(ctx context.Context, user string, items ...Item) ([]Count, error) {
	r := Request{Method: http.MethodGet, Path: CountsPath(items...), User: user}
	if !fitsQuery(items) {
		r = Request{Method: http.MethodPost, Path: "/v1/likes/counts", User: user, Body: map[string]any{"items": items}}
	}
	return c.counts(ctx, r, items)
}

// CountsWithFriends asks by POST and adds how many of the friends like each item.
func (c *Client) CountsWithFriends(ctx context.Context, user string, friends []string, items ...Item) ([]Count, error) {
	body := map[string]any{"items": items, "friends": friends}
	return c.counts(ctx, Request{Method: http.MethodPost, Path: "/v1/likes/counts", User: user, Body: body}, items)
}

func (c *Client) counts(ctx context.Context, r Request, items []Item) ([]Count, error) {
	var out struct {
		Counts []Count `json:"counts"`
	}
	if err := c.call(ctx, r, &out); err != nil {
		return nil, err
	}
	if len(out.Counts) != len(items) {
		return nil, fmt.Errorf("counts of %d items answered %d entries", len(items), len(out.Counts))
	}
	for k, got := range out.Counts {
		if got.Item != items[k] {
			return nil, fmt.Errorf("counts entry %d is of %v, asked for %v", k, got.Item, items[k])
		}
		if got.Count < 0 {
			return nil, fmt.Errorf("count of %v is %d", got.Item, got.Count)
		}
		if r.User != "" && got.LikedByMe == nil || r.User == "" && got.Mine() {
			return nil, fmt.Errorf("counts as %q: liked_by_me present is %v", r.User, got.LikedByMe != nil)
		}
	}
	return out.Counts, nil
}

// CountsPath returns the path and query that ask for the items' counts. An id
// with a comma cannot be asked for in this form.
func CountsPath(items ...Item) string {
	var b strings.Builder
	b.WriteString("/v1/likes/counts")
	sep, last := "?", ""
	for _, i := range items {
		if i.Collection == last {
			b.WriteString(",")
		} else {
			b.WriteString(sep + url.QueryEscape(i.Collection) + "=")
		}
		b.WriteString(url.QueryEscape(i.ID))
		sep, last = "&", i.Collection
	}
	return b.String()
}

// fitsQuery reports whether [CountsPath] can express the items.
func fitsQuery(items []Item) bool {
	size := 0
	for _, i := range items {
		size += len(i.ID)
		if strings.Contains(i.ID, ",") || i.Collection != items[0].Collection {
			return false
		}
	}
	return size <= 2<<10
}

// reader is who reads what is open to everybody, so that the limit of requests
// without a token does not count.
const reader = "reader"

// Likers returns one page of who likes an item.
func (c *Client) Likers(ctx context.Context, item Item, cursor string, limit int) (LikersPage, error) {
	var out LikersPage
	err := c.call(ctx, Request{Method: http.MethodGet, Path: item.Path("likers") + page(cursor, limit), User: reader}, &out)
	return out, err
}

// MyLikes returns one page of what a user likes.
func (c *Client) MyLikes(ctx context.Context, user, cursor string, limit int) (LikedPage, error) {
	var out LikedPage
	err := c.call(ctx, Request{Method: http.MethodGet, Path: "/v1/me/likes" + page(cursor, limit), User: user}, &out)
	return out, err
}

func page(cursor string, limit int) string {
	q := "?limit=" + strconv.Itoa(limit)
	if cursor != "" {
		q += "&cursor=" + url.QueryEscape(cursor)
	}
	return q
}

// WalkLikers returns who likes an item and the number of pages, and checks what
// every walk owes: full pages but the last, nobody twice, newest first.
func (c *Client) WalkLikers(ctx context.Context, item Item, limit int) (likers []Liker, pages int, err error) {
	seen := map[string]bool{}
	for cursor := ""; ; {
		p, err := c.Likers(ctx, item, cursor, limit)
		if err != nil {
			return nil, pages, err
		}
		pages++
		for _, l := range p.Likers {
			if seen[l.User] {
				return nil, pages, fmt.Errorf("likers of %v: %s twice", item, l.User)
			}
			if n := len(likers); n > 0 && l.LikedAt.After(likers[n-1].LikedAt) {
				return nil, pages, fmt.Errorf("likers of %v: %s is newer than the one above", item, l.User)
			}
			seen[l.User] = true
			likers = append(likers, l)
		}
		if cursor = p.NextCursor; cursor == "" {
			return likers, pages, nil
		}
		if len(p.Likers) != limit {
			return nil, pages, fmt.Errorf("likers of %v: page %d of %d has %d entries and a cursor", item, pages, limit, len(p.Likers))
		}
	}
}

// WalkLiked returns everything that a user likes, newest first.
func (c *Client) WalkLiked(ctx context.Context, user string) ([]Liked, error) {
	var all []Liked
	for cursor := ""; ; {
		p, err := c.MyLikes(ctx, user, cursor, MaxPage)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Likes...)
		if cursor = p.NextCursor; cursor == "" {
			return all, nil
		}
		if len(p.Likes) == 0 {
			return nil, errors.New("an empty page of likes has a cursor")
		}
	}
}

// Among returns which of the users like an item.
func (c *Client) Among(ctx context.Context, item Item, users []string) ([]string, error) {
	var out struct {
		Count int64    `json:"count"`
		Users []string `json:"users"`
	}
	r := Request{Method: http.MethodPost, Path: item.Path("likers/among"), User: "reader", Body: map[string]any{"users": users}}
	if err := c.call(ctx, r, &out); err != nil {
		return nil, err
	}
	if out.Count != int64(len(out.Users)) {
		return nil, fmt.Errorf("likers among: count %d with %d names", out.Count, len(out.Users))
	}
	return out.Users, nil
}

// Batch sends up to MaxBatch commands of a trusted backend. With original times
// the token also has the import scope.
func (c *Client) Batch(ctx context.Context, commands []Command) error {
	scope := ScopeWriteAny
	for _, cmd := range commands {
		if cmd.LikedAt != "" {
			scope = ScopeWriteAny + " " + ScopeImport
		}
	}
	var out struct {
		Results []LikeState `json:"results"`
	}
	err := c.call(ctx, Request{
		Method: http.MethodPost, Path: "/v1/likes:batch", User: "backend", Scope: scope,
		Body: map[string]any{"commands": commands},
	}, &out)
	if err == nil && len(out.Results) != len(commands) {
		err = fmt.Errorf("%d results of %d commands", len(out.Results), len(commands))
	}
	return err
}

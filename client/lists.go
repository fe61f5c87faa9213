package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Liker is a user who likes an item.
type Liker struct {
	User    string    `json:"user"`
	LikedAt time.Time `json:"liked_at"`
}

// Liked is an item that the caller likes.
type Liked struct {
	Item
	LikedAt time.Time `json:"liked_at"`
}

// Likers yields everybody who likes an item, newest first. Pages are fetched as
// the loop needs them. Who likes the item throughout is found once, whoever comes
// and goes meanwhile. An error is the last element.
func (c *Client) Likers(ctx context.Context, item Item) iter.Seq2[Liker, error] {
	return walk(ctx, c, item.path()+"/likers", func(p *page) []Liker { return p.Likers })
}

// Mine yields everything that the caller likes, newest first, as Likers does.
func (c *Client) Mine(ctx context.Context) iter.Seq2[Liked, error] {
	return walk(ctx, c, "/v1/me/likes", func(p *page) []Liked { return p.Likes })
}

type page struct {
	Likers     []Liker `json:"likers"`
	Likes      []Liked `json:"likes"`
	NextCursor string  `json:"next_cursor"`
}

// walk follows the cursors of a list from its start to its end.
func walk[T any](ctx context.Context, c *Client, path string, rows func(*page) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := ""
		for {
			p, err := ask[page](ctx, c, http.MethodGet, path+query, nil)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, row := range rows(&p) {
				if !yield(row, nil) {
					return
				}
			}
			if p.NextCursor == "" {
				return
			}
			query = "?cursor=" + url.QueryEscape(p.NextCursor)
		}
	}
}

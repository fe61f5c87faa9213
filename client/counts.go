package client

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// MaxItems and MaxCommands are the most that one request of the API may name.
const (
	MaxItems    = 100
	MaxCommands = 1000
)

// maxLookups is how many items times friends a server looks up for one request.
const maxLookups = 20_000

// Count is what is known about one item.
type Count struct {
	Item
	// Count is exact; Display is its short form, such as "1.2M".
	Count   int64  `json:"count"`
	Display string `json:"display"`
	// LikedByMe is false without a token, and in a stream.
	LikedByMe bool `json:"liked_by_me"`
	// AgeMS is as in [Outcome].
	AgeMS int64 `json:"age_ms,omitempty"`
	// Friends is set by CountsWithFriends only.
	Friends *Friends `json:"friends,omitempty"`
	// Version orders the counts of one item: the larger is newer. Only a stream
	// tells it.
	Version uint64 `json:"version,string,omitempty"`
}

// Friends says which of the users that were asked about like an item.
type Friends struct {
	Count  int      `json:"count"`
	Sample []string `json:"sample"` // the first of them, at most 3
}

// Counts returns one entry per item, in order, repeats included. Unknown items
// have count 0. More than [MaxItems] items take several requests.
func (c *Client) Counts(ctx context.Context, items ...Item) ([]Count, error) {
	return c.counts(ctx, nil, items)
}

// CountsWithFriends is Counts that also says how many of up to 1,000 friends like
// each item, exactly.
func (c *Client) CountsWithFriends(ctx context.Context, friends []string, items ...Item) ([]Count, error) {
	if friends == nil {
		friends = []string{}
	}
	return c.counts(ctx, friends, items)
}

type countsQuestion struct {
	Items   []Item   `json:"items"`
	Friends []string `json:"friends,omitzero"`
}

func (c *Client) counts(ctx context.Context, friends []string, items []Item) ([]Count, error) {
	all := make([]Count, 0, len(items))
	size := max(1, min(MaxItems, maxLookups/max(1, len(friends))))
	for page := range slices.Chunk(items, size) {
		answer, err := ask[struct{ Counts []Count }](ctx, c, http.MethodPost, "/v1/likes/counts", countsQuestion{page, friends})
		if err != nil {
			return nil, err
		}
		if len(answer.Counts) != len(page) {
			return nil, fmt.Errorf("the server counted %d of %d items", len(answer.Counts), len(page))
		}
		all = append(all, answer.Counts...)
	}
	return all, nil
}

// LikersAmong returns which of up to 1,000 users like an item: exactly, in order,
// each once. It needs a token.
func (c *Client) LikersAmong(ctx context.Context, item Item, users ...string) ([]string, error) {
	if users == nil {
		users = []string{}
	}
	question := struct {
		Users []string `json:"users"`
	}{users}
	answer, err := ask[struct{ Users []string }](ctx, c, http.MethodPost, item.path()+"/likers/among", question)
	return answer.Users, err
}

// Op is what a command does.
type Op string

// The operations of a [Command].
const (
	OpLike   Op = "like"
	OpUnlike Op = "unlike"
)

// Command is a like or unlike in the name of any user.
type Command struct {
	Op Op `json:"op"`
	Item
	User string `json:"user"`
	// LikedAt is the original time of an imported like; zero is now.
	LikedAt time.Time `json:"liked_at,omitzero"`
}

// Batch applies commands of any users, in order, and returns one outcome each. It
// is for trusted backends: the token needs the scope likes:write:any, and
// likes:import where LikedAt is set. More than [MaxCommands] take several requests;
// after an error the outcomes are those of the requests that were answered, and
// repeating the whole is harmless.
func (c *Client) Batch(ctx context.Context, commands ...Command) ([]Outcome, error) {
	all := make([]Outcome, 0, len(commands))
	for part := range slices.Chunk(commands, MaxCommands) {
		question := struct {
			Commands []Command `json:"commands"`
		}{part}
		answer, err := ask[struct{ Results []Outcome }](ctx, c, http.MethodPost, "/v1/likes:batch", question)
		if err != nil {
			return all, err
		}
		all = append(all, answer.Results...)
	}
	return all, nil
}

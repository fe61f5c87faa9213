package httpapi

import (
	"net/http"
	"strconv"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// likers answers one page of who likes an item, newest first.
func (a *api) likers(x *exchange, r *http.Request) error {
	item, err := pathItem(r)
	if err != nil {
		return err
	}
	open := func(text string) (like.Fact, error) { return a.cursors.OpenLiker(item, text) }
	after, n, err := a.listRequest(x, r, open)
	if err != nil {
		return err
	}
	page, err := a.ledger.Likers(r.Context(), item, after, n)
	if err != nil {
		return err
	}
	return x.answer(appendList(`{"likers":[`, page, appendLiker, a.cursors.SealLiker))
}

// mine answers one page of what the caller likes, newest first.
func (a *api) mine(x *exchange, r *http.Request) error {
	open := func(text string) (like.Fact, error) { return a.cursors.OpenLiked(x.viewer(), text) }
	after, n, err := a.listRequest(x, r, open)
	if err != nil {
		return err
	}
	page, err := a.ledger.LikedBy(r.Context(), x.viewer(), after, n)
	if err != nil {
		return err
	}
	return x.answer(appendList(`{"likes":[`, page, appendLiked, a.cursors.SealLiked))
}

// listRequest reads the position and the page size that a list is asked for.
func (a *api) listRequest(x *exchange, r *http.Request, open func(string) (like.Fact, error)) (after like.Fact, n int, err error) {
	values, err := params(r.URL.RawQuery, "cursor", "limit")
	if err != nil {
		return after, 0, err
	}
	if n, err = a.pageLimit(values); err != nil {
		return after, 0, err
	}
	if text, ok := values["cursor"]; ok {
		if after, err = open(text); err != nil {
			return after, 0, refuse(invalidCursor, "ask for the list again without a cursor")
		}
	}
	return after, n, a.refuseBody(x, r)
}

// appendList builds a page: its facts, and the cursor behind the last one while
// there are more.
func appendList(head string, page ledger.Page, row func([]byte, like.Fact) []byte, seal func(like.Fact) string) []byte {
	b := append(make([]byte, 0, 96*(len(page.Facts)+4)), head...)
	for i, f := range page.Facts {
		if i > 0 {
			b = append(b, ',')
		}
		b = row(b, f)
	}
	b = append(b, ']')
	if page.More {
		b = append(b, `,"next_cursor":`...)
		b = appendString(b, seal(page.Facts[len(page.Facts)-1]))
	}
	return append(b, '}')
}

func appendLiker(b []byte, f like.Fact) []byte {
	b = append(b, `{"user":`...)
	b = appendString(b, string(f.User))
	return appendLikedAt(b, f)
}

func appendLiked(b []byte, f like.Fact) []byte {
	return appendLikedAt(appendItem(append(b, '{'), f.Item), f)
}

func appendLikedAt(b []byte, f like.Fact) []byte {
	b = append(b, `,"liked_at":"`...)
	b = appendTime(b, f.Since)
	return append(b, `"}`...)
}

// among answers which of the given users like an item.
func (a *api) among(x *exchange, r *http.Request) error {
	item, err := pathItem(r)
	if err != nil {
		return err
	}
	if _, err := params(r.URL.RawQuery); err != nil {
		return err
	}
	text, err := a.readBody(x, r)
	if err != nil {
		return err
	}
	users, err := a.amongBody(text)
	if err != nil {
		return err
	}
	if err := a.mayLookUp(x, 1, len(users)); err != nil {
		return err
	}
	likers, err := a.ledger.LikersAmong(r.Context(), item, users)
	if err != nil {
		return err
	}
	return x.answer(appendAmong(likers))
}

// amongBody reads {"users":[…]}.
func (a *api) amongBody(text string) (users []like.User, err error) {
	err = decode(text, func(in *input) {
		in.object(func(key string) {
			if key != "users" {
				in.unknown(key)
				return
			}
			users = in.users("users", a.cfg.FriendsMax)
		})
	})
	if err == nil && users == nil {
		err = refuse(invalidBody, "the field \"users\" is missing")
	}
	return users, err
}

// appendAmong builds {"count":2,"users":["u1","u2"]}.
func appendAmong(likers []like.User) []byte {
	b := append([]byte(nil), `{"count":`...)
	b = strconv.AppendInt(b, int64(len(likers)), 10)
	b = append(b, `,"users":`...)
	return append(appendUsers(b, likers), '}')
}

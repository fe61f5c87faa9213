package httpapi

import (
	"net/http"
	"strings"

	"likewise/internal/like"
)

// sampleFriends is how many of the friends who like an item are named.
const sampleFriends = 3

// tokenParams are names under which clients put a token into a URL. They are
// never read as collections: such a caller wants to be known and must learn that
// it is not.
var tokenParams = map[string]bool{"access_token": true, "token": true}

// friends is who of the caller's friends likes one item.
type friends struct {
	Count  int         `json:"count"`
	Sample []like.User `json:"sample"`
}

func (a *api) getCounts(x *exchange, r *http.Request) error {
	items, err := itemsQuery(r.URL.RawQuery, a.cfg.CountsMaxItems)
	if err != nil {
		return err
	}
	if err := a.refuseBody(x, r); err != nil {
		return err
	}
	return a.answerCounts(x, r, items, nil)
}

func (a *api) postCounts(x *exchange, r *http.Request) error {
	if _, err := params(r.URL.RawQuery); err != nil {
		return err
	}
	text, err := a.readBody(x, r)
	if err != nil {
		return err
	}
	items, users, err := a.countsBody(text)
	if err != nil {
		return err
	}
	var liking []friends
	if users != nil {
		if err := a.mayLookUp(x, len(items), len(users)); err != nil {
			return err
		}
		if liking, err = a.friends(r, items, users); err != nil {
			return err
		}
	}
	return a.answerCounts(x, r, items, liking)
}

// itemsQuery reads posts=1,2&games=7: parameters are collections, and values are
// decoded before they are split at commas. limit bounds the items.
func itemsQuery(raw string, limit int) ([]like.Item, error) {
	items := make([]like.Item, 0, min(strings.Count(raw, ",")+strings.Count(raw, "=")+1, limit))
	err := eachParam(raw, func(collection, ids string) error {
		if tokenParams[collection] {
			return refuse(invalidToken, "a token is accepted in the Authorization header only")
		}
		for id := range strings.SplitSeq(ids, ",") {
			if len(items) == limit {
				return refuse(tooMany, "more than %d items in one request", limit)
			}
			item := like.Item{Collection: collection, ID: id}
			if err := item.Validate(); err != nil {
				return err
			}
			items = append(items, item)
		}
		return nil
	})
	if err == nil && len(items) == 0 {
		err = refuse(invalidQuery, "no item is named; write posts=1,2 with the name of a collection")
	}
	return items, err
}

// countsBody reads {"items":[{"collection":…,"id":…}],"friends":[…]}.
func (a *api) countsBody(text string) (items []like.Item, users []like.User, err error) {
	err = decode(text, func(in *input) {
		in.object(func(key string) {
			switch key {
			case "items":
				in.array("items", a.cfg.CountsMaxItems, func() { items = append(items, in.item()) })
			case "friends":
				users = in.users("friends", a.cfg.FriendsMax)
			default:
				in.unknown(key)
			}
		})
	})
	if err == nil && len(items) == 0 {
		err = refuse(invalidBody, "no item is named")
	}
	return items, users, err
}

// item reads {"collection":…,"id":…}.
func (in *input) item() (item like.Item) {
	in.object(func(key string) {
		switch key {
		case "collection":
			item.Collection = in.str()
		case "id":
			item.ID = in.str()
		default:
			in.unknown(key)
		}
	})
	if err := item.Validate(); err != nil {
		in.stop(err)
	}
	return item
}

// users reads an array of users. The result is not nil.
func (in *input) users(what string, limit int) []like.User {
	users := []like.User{}
	in.array(what, limit, func() {
		user := like.User(in.str())
		if err := user.Validate(); err != nil {
			in.stop(err)
		}
		users = append(users, user)
	})
	return users
}

// mayLookUp bounds a question about friends, which looks up a fact for each of them
// and each item: too much for just anybody, and for one request.
func (a *api) mayLookUp(x *exchange, items, users int) error {
	if !x.known {
		return refuse(missingToken, "asking which friends like an item needs a token")
	}
	if limit := a.cfg.FriendsMaxLookups; items*users > limit {
		return refuse(tooMany, "%d items times %d friends are more than %d lookups in one request", items, users, limit)
	}
	return nil
}

// friends asks for each item which of the users like it.
func (a *api) friends(r *http.Request, items []like.Item, users []like.User) ([]friends, error) {
	known := make([]friends, len(items))
	for i, item := range items {
		likers, err := a.ledger.LikersAmong(r.Context(), item, users)
		if err != nil {
			return nil, err
		}
		known[i] = friends{Count: len(likers), Sample: likers[:min(len(likers), sampleFriends)]}
	}
	return known, nil
}

// answerCounts answers a page; liking is nil or has one element per item.
func (a *api) answerCounts(x *exchange, r *http.Request, items []like.Item, liking []friends) error {
	page, err := a.counts.Page(r.Context(), x.viewer(), items)
	if err != nil {
		return err
	}
	if !x.known && r.Method != http.MethodPost {
		x.Header()["Cache-Control"] = publicSecond
	}
	return x.answer(appendPage(make([]byte, 0, 128*len(page)), page, x.known, liking))
}

// publicSecond lets caches share what is the same for everybody, for as long as
// this node serves a total without reading it again.
var publicSecond = []string{"public, max-age=1"}

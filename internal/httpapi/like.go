package httpapi

import (
	"net/http"
	"strconv"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

func (a *api) put(x *exchange, r *http.Request) error    { return a.command(x, r, like.OpLike) }
func (a *api) delete(x *exchange, r *http.Request) error { return a.command(x, r, like.OpUnlike) }

// command applies one like or unlike of the token's own user.
func (a *api) command(x *exchange, r *http.Request, op like.Op) error {
	item, err := pathItem(r)
	if err != nil {
		return err
	}
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	ack, err := a.ledger.Apply(r.Context(), like.Command{Item: item, User: x.viewer(), Op: op})
	if err != nil {
		return err
	}
	a.noticed(item, ack)
	return x.answer(appendOutcome(nil, ack.State.Liked, ack.Count))
}

// noticed lets readers of this node see the total that an acknowledgement shows.
func (a *api) noticed(item like.Item, ack ledger.Ack) {
	a.counts.Observe(like.Total{Item: item, Count: ack.Count, Version: ack.Version})
}

// get answers the caller's own state and the count of one item.
func (a *api) get(x *exchange, r *http.Request) error {
	item, err := pathItem(r)
	if err != nil {
		return err
	}
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	page, err := a.counts.Page(r.Context(), x.viewer(), []like.Item{item})
	if err != nil {
		return err
	}
	b := appendOutcome(nil, page[0].Liked, page[0].Total.Count)
	return x.answer(append(appendAge(b[:len(b)-1], page[0].Age), '}'))
}

// appendOutcome appends {"liked":true,"count":124}.
func appendOutcome(b []byte, liked bool, count int64) []byte {
	b = append(b, `{"liked":`...)
	b = strconv.AppendBool(b, liked)
	b = append(b, `,"count":`...)
	b = strconv.AppendInt(b, count, 10)
	return append(b, '}')
}

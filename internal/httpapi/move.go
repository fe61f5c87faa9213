package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

const (
	changesBeat    = 10 * time.Second // between two lines of a feed without changes
	freezePatience = 10 * time.Second // for the next sign of life of who froze the ledger
)

// likersBody is a page of all who like an item.
type likersBody struct {
	Likers []likerBody `json:"likers"`
	More   bool        `json:"more"`
}

type likerBody struct {
	User    string    `json:"user"`
	LikedAt time.Time `json:"liked_at"`
}

// itemLikers answers a page of an item's likers, newest first, behind a position
// that is spelled out: operators may see what cursors hide.
func (a *admin) itemLikers(x *exchange, r *http.Request) error {
	item, err := pathItem(r)
	if err != nil {
		return err
	}
	values, err := params(r.URL.RawQuery, "after_user", "after", "limit")
	if err != nil {
		return err
	}
	if err := a.refuseBody(x, r); err != nil {
		return err
	}
	n := ledger.MaxPage
	if text, ok := values["limit"]; ok {
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > ledger.MaxPage || strconv.Itoa(n) != text {
			return refuse(invalidQuery, "limit must be a number from 1 to %d", ledger.MaxPage)
		}
	}
	after, err := positionOf(item, values)
	if err != nil {
		return err
	}
	page, err := a.ledger.Likers(r.Context(), item, after, n)
	if err != nil {
		return err
	}
	body := likersBody{Likers: make([]likerBody, len(page.Facts)), More: page.More}
	for k, f := range page.Facts {
		body.Likers[k] = likerBody{string(f.User), f.Since.Time()}
	}
	return x.answerJSON(http.StatusOK, body)
}

// positionOf reads the position that a page begins behind; none is the start.
func positionOf(item like.Item, values map[string]string) (like.Fact, error) {
	user, given := values["after_user"]
	text, timed := values["after"]
	if !given && !timed {
		return like.Fact{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if !given || err != nil || t.UnixMicro() <= 0 {
		return like.Fact{}, refuse(invalidQuery, "after_user and after must both be those of the last liker of a page")
	}
	after := like.Fact{Item: item, User: like.User(user), Since: like.StampOf(t)}
	return after, after.User.Validate()
}

// adminBatch applies commands with original times for an operator.
func (a *admin) adminBatch(x *exchange, r *http.Request) error {
	if _, err := params(r.URL.RawQuery); err != nil {
		return err
	}
	text, err := a.readBody(x, r)
	if err != nil {
		return err
	}
	cmds, _, err := a.batchBody(text)
	if err != nil {
		return err
	}
	acks, err := a.ledger.ApplyMany(r.Context(), cmds)
	if err != nil {
		return err
	}
	return x.answer(appendResults(make([]byte, 0, 32*len(acks)+16), acks))
}

// changedBody is one changed total.
type changedBody struct {
	Collection string `json:"collection"`
	ID         string `json:"id"`
	Count      int64  `json:"count"`
	Version    string `json:"version"`
}

func changedBodies(batch []like.Total) []changedBody {
	bodies := make([]changedBody, len(batch))
	for k, t := range batch {
		bodies[k] = changedBody{t.Item.Collection, t.Item.ID, t.Count, strconv.FormatUint(t.Version, 10)}
	}
	return bodies
}

// changes streams the ledger's feed. Lines without changes come in between, so that
// both ends notice when the other is gone.
func (a *admin) changes(x *exchange, r *http.Request) error {
	if err := a.noExtras(x, r); err != nil {
		return err
	}
	ctx, leave := context.WithCancelCause(r.Context())
	var beats sync.WaitGroup
	defer beats.Wait()
	defer leave(nil)
	out := x.streamed()
	defer func() { _ = out.end() }()
	var mu sync.Mutex // one line at a time
	send := func(batch []like.Total) error {
		mu.Lock()
		defer mu.Unlock()
		return clientLeft(ctx, out.line("changed", changedBodies(batch)))
	}
	live := false
	for batch, err := range a.ledger.Feed(ctx) {
		if err == nil {
			err = send(batch)
		}
		if err != nil {
			leave(err)
			beats.Wait()
			_ = out.line("error", a.problemLine(x, err))
			return err
		}
		if !live {
			live = true
			beats.Go(func() { beat(ctx, leave, func() error { return send(nil) }) })
		}
	}
	return nil
}

// beat sends until ctx is done, and ends it when that fails.
func beat(ctx context.Context, leave context.CancelCauseFunc, send func() error) {
	tick := time.NewTicker(changesBeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := send(); err != nil {
				leave(err)
				return
			}
		}
	}
}

// problemLine is a failure as the last line of an answer under way.
func (a *admin) problemLine(x *exchange, err error) problemBody {
	p, _ := explain(err)
	return problemBody{Type: p.urn(), Title: p.title, Status: p.status, Code: p.code, RequestID: x.id}
}

// freeze lets the ledger stand still for as long as the client goes on sending: each
// piece of the body is answered by a line. So the ledger moves on by itself when
// the client ends, dies, hangs or cannot be reached, and each end knows of the other.
func (a *admin) freeze(x *exchange, r *http.Request) error {
	if _, err := params(r.URL.RawQuery); err != nil {
		return err
	}
	freezer, ok := a.ledger.(ledger.Freezer)
	if !ok {
		return errors.ErrUnsupported
	}
	control := http.NewResponseController(x.ResponseWriter)
	return freezer.Freeze(r.Context(), func(ctx context.Context) error {
		a.log.WarnContext(ctx, "the ledger stands still: likes are refused", "by", x.viewer())
		begin := time.Now()
		err := echo(ctx, control, r, x)
		a.log.WarnContext(context.WithoutCancel(ctx), "the ledger moves on", "after", time.Since(begin).String(), "because", err)
		return nil
	})
}

// echo answers each piece of a body by a line, and returns why that ended.
func echo(ctx context.Context, control *http.ResponseController, r *http.Request, x *exchange) error {
	// The deadline of a read under way is moved into the past.
	defer context.AfterFunc(ctx, func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })()
	out := x.streamed()
	defer func() { _ = out.end() }()
	for piece := make([]byte, 512); ; {
		if err := out.line("frozen", true); err != nil {
			return err
		}
		_ = control.SetReadDeadline(time.Now().Add(freezePatience))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := r.Body.Read(piece); err != nil {
			return err
		}
	}
}

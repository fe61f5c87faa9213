package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

const (
	// silence is how long a stream that has something to say every ten seconds may
	// say nothing.
	silence = 30 * time.Second
	// pulse is the time between two signs of life of who holds a ledger still, and
	// pulseLost that after which the answers to them are missed.
	pulse     = time.Second
	pulseLost = 8 * time.Second
)

// Store is the ledger of a running server, through its admin listener, as far as
// moving facts needs it.
type Store struct{ *Remote }

var (
	_ ledger.Feeder  = Store{}
	_ ledger.Freezer = Store{}
)

// Export implements that part of [ledger.Keeper].
func (s Store) Export(ctx context.Context) iter.Seq2[like.Fact, error] {
	return func(yield func(like.Fact, error) bool) {
		answer, err := s.Stream(ctx, http.MethodGet, "/admin/v1/export")
		if err != nil {
			yield(like.Fact{}, err)
			return
		}
		defer answer.Close()
		lines := bufio.NewReaderSize(answer, maxLineBytes)
		for {
			line, err := lines.ReadSlice('\n')
			var fact like.Fact
			switch {
			case errors.Is(err, io.EOF) && len(line) == 0:
				return
			case err != nil:
				err = s.broke(ctx, "export", err)
			default:
				fact, err = parseFact(line)
			}
			if !yield(fact, err) || err != nil {
				return
			}
		}
	}
}

// parseFact reads a line that a server wrote.
func parseFact(line []byte) (like.Fact, error) {
	var l jsonLine
	err := json.Unmarshal(line, &l)
	var since time.Time
	if err == nil {
		since, err = time.Parse(time.RFC3339Nano, l.LikedAt)
	}
	if err != nil {
		return like.Fact{}, fmt.Errorf("%w: a line of the export is not what likewise sends: %w", like.ErrCorrupt, err)
	}
	return like.Fact{Item: like.Item{Collection: l.Collection, ID: l.ID}, User: like.User(l.User), Since: like.StampOf(since)}, nil
}

// Likers implements that part of [ledger.Reader].
func (s Store) Likers(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
	query := url.Values{"limit": {strconv.Itoa(n)}}
	if after != (like.Fact{}) {
		query.Set("after_user", string(after.User))
		query.Set("after", after.Since.Time().Format(time.RFC3339Nano))
	}
	var answer struct {
		Likers []struct {
			User    like.User
			LikedAt time.Time `json:"liked_at"`
		}
		More bool
	}
	if err := s.Call(ctx, http.MethodGet, itemPath(item, "likers")+"?"+query.Encode(), nil, &answer); err != nil {
		return ledger.Page{}, err
	}
	page := ledger.Page{Facts: make([]like.Fact, len(answer.Likers)), More: answer.More}
	for k, l := range answer.Likers {
		page.Facts[k] = like.Fact{Item: item, User: l.User, Since: like.StampOf(l.LikedAt)}
	}
	return page, nil
}

// ApplyMany implements that part of [ledger.Writer]. The acknowledgements have no
// stamps and no versions.
func (s Store) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	results, err := s.batch(ctx, "/admin/v1/likes:batch", cmds)
	if err != nil {
		return nil, err
	}
	acks := make([]ledger.Ack, len(results))
	for k, r := range results {
		acks[k] = ledger.Ack{State: like.State{Liked: r.Liked}, Count: r.Count}
	}
	return acks, nil
}

// changed is a line of the feed.
type changed struct {
	Changed []struct {
		Collection, ID string
		Count          int64
		Version        uint64 `json:",string"`
	}
	Error *struct{ Code, Title string }
}

// Feed implements [ledger.Feeder].
func (s Store) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		ctx, lose := context.WithCancelCause(ctx)
		defer lose(nil)
		watchdog := time.AfterFunc(silence, func() { lose(fmt.Errorf("%w: %s says nothing any more", like.ErrUnavailable, s.URL)) })
		defer watchdog.Stop()
		answer, err := s.Stream(ctx, http.MethodGet, "/admin/v1/changes")
		if err != nil {
			yield(nil, err)
			return
		}
		defer answer.Close()
		live := false
		for decoder := json.NewDecoder(answer); ; {
			var line changed
			if err := decoder.Decode(&line); err != nil {
				yield(nil, s.broke(ctx, "feed", err))
				return
			}
			watchdog.Reset(silence)
			if line.Error != nil {
				yield(nil, fmt.Errorf("%w: the server's feed ended: %s", kindOf(line.Error.Code), line.Error.Title))
				return
			}
			if live && len(line.Changed) == 0 {
				continue
			}
			live = true
			if !yield(line.totals(), nil) {
				return
			}
		}
	}
}

func (c changed) totals() []like.Total {
	totals := make([]like.Total, len(c.Changed))
	for k, t := range c.Changed {
		totals[k] = like.Total{Item: like.Item{Collection: t.Collection, ID: t.ID}, Count: t.Count, Version: t.Version}
	}
	return totals
}

// kindOf returns the kind of a failure that ended a stream.
func kindOf(code string) error {
	switch code {
	case "overloaded":
		return like.ErrOverloaded
	case "shutting_down":
		return like.ErrClosed
	default:
		return like.ErrUnavailable
	}
}

// Freeze implements [ledger.Freezer]. The server's ledger stands still for as long as
// a request lasts that shows a sign of life every second, and hears of each.
func (s Store) Freeze(ctx context.Context, while func(context.Context) error) error {
	ctx, lose := context.WithCancelCause(ctx)
	body, beat := io.Pipe()
	var parts sync.WaitGroup
	defer parts.Wait()
	defer lose(nil)
	defer body.Close()
	answer, err := s.send(ctx, http.MethodPost, "/admin/v1/freeze", "application/octet-stream", body)
	if err != nil {
		return err
	}
	defer answer.Close()
	lost := func() {
		lose(fmt.Errorf("%w: %s does not say any more that it stands still", like.ErrUnavailable, s.URL))
	}
	watchdog := time.AfterFunc(pulseLost, lost)
	defer watchdog.Stop()
	lines := bufio.NewReader(answer)
	if _, err := lines.ReadSlice('\n'); err != nil {
		return s.broke(ctx, "standstill", err)
	}
	parts.Go(func() {
		for err := error(nil); err == nil; watchdog.Reset(pulseLost) {
			_, err = lines.ReadSlice('\n')
		}
		lost()
	})
	parts.Go(func() {
		tick := time.NewTicker(pulse)
		defer tick.Stop()
		for err := error(nil); err == nil; {
			select {
			case <-tick.C:
				_, err = beat.Write([]byte{'\n'})
			case <-ctx.Done():
				return
			}
		}
	})
	err = while(ctx)
	_ = beat.Close() // which ends the standstill, and then the answer
	select {
	case <-ctx.Done():
	case <-time.After(pulseLost):
	}
	return err
}

// broke is the failure of an answer under way.
func (s Store) broke(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: the %s of %s broke off: %w", like.ErrUnavailable, what, s.URL, err)
}

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"
)

// Page is what a page in a browser shows of the items that it follows, over any
// number of streams one after another. It sends back the last id that it saw on
// any frame, and of each item keeps the count with the largest version. Safe for
// concurrent use; [Page.Follow] by one goroutine at a time.
type Page struct {
	client *Client
	user   string
	items  []Item

	mu     sync.Mutex
	shown  map[Item]LiveCount
	most   int64
	signs  int
	lastID string
	last   Frame
}

// NewPage returns a page that follows items as a user and shows nothing yet.
func (c *Client) NewPage(user string, items ...Item) *Page {
	return &Page{client: c, user: user, items: items, shown: map[Item]LiveCount{}}
}

// Follow follows one stream until the server ends it or the context does, for
// both of which it returns nil. An error is a refused or broken stream, or one
// that has what it must not have.
func (p *Page) Follow(ctx context.Context) error {
	s, err := p.client.Stream(ctx, p.user, p.LastID(), p.items...)
	if err != nil {
		return unlessCut(ctx, err)
	}
	defer s.Close()
	told := map[Item]LiveCount{} // on this stream
	for {
		f, err := s.Next()
		if err == nil {
			err = p.take(f, told)
		}
		switch {
		case errors.Is(err, errFrame):
			return err
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unlessCut(ctx, err)
		}
	}
}

func unlessCut(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// take shows what a frame says. On one stream versions do not go back, and one
// version has one count.
func (p *Page) take(f Frame, told map[Item]LiveCount) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = f
	if f.ID != "" {
		p.lastID = f.ID
	}
	if f.Event == "" && f.Retry < 0 {
		p.signs++
	}
	for _, n := range f.Counts {
		if t, ok := told[n.Item]; ok && (n.Version < t.Version || n.Version == t.Version && n != t) {
			return fmt.Errorf("%w: %+v after %+v", errFrame, n, t)
		}
		told[n.Item] = n
		if old, ok := p.shown[n.Item]; !ok || n.Version > old.Version {
			p.shown[n.Item] = n
			p.most = max(p.most, n.Count)
		}
	}
	return nil
}

// Counts returns what the page shows now.
func (p *Page) Counts() map[Item]LiveCount {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.shown)
}

// Most returns the largest count that the page ever showed of any item.
func (p *Page) Most() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// Signs returns how many frames had nothing to show, such as heartbeats.
func (p *Page) Signs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signs
}

// LastID returns the id that the page would come back with.
func (p *Page) LastID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastID
}

// Farewell returns how long the last frame said to wait before coming back, or -1
// when it said nothing of it.
func (p *Page) Farewell() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.Retry
}

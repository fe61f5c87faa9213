package live

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// pump is the sink of a client with a goroutine: it notes what is to be done and
// leaves the doing to that.
type pump struct {
	*client
	fresh chan struct{} // there is news
	due   chan struct{} // a heartbeat is due
	quit  chan struct{} // closed when the stream is to end

	once sync.Once
	wait time.Duration // what to tell the client at the end; readable after quit
}

func newPump(c *client) *pump {
	return &pump{client: c, fresh: make(chan struct{}, 1), due: make(chan struct{}, 1), quit: make(chan struct{})}
}

func (p *pump) offer(frame, []byte) {
	if !signal(p.fresh) {
		p.hub.metrics.skipped.Inc()
	}
}

func (p *pump) tick(_ time.Time, due bool) {
	if due {
		signal(p.due)
	}
}

func (p *pump) end(wait time.Duration) {
	p.once.Do(func() {
		p.wait = wait
		close(p.quit)
	})
}

func (p *pump) stop() { p.end(0) }

// signal leaves a token and reports whether there was room for it.
func signal(ch chan<- struct{}) bool {
	select {
	case ch <- struct{}{}:
		return true
	default:
		return false
	}
}

// serve writes the events of a stream until it or its context ends.
func (p *pump) serve(ctx context.Context, out outlet, lastID string) {
	h := p.hub
	set, after := h.resume(p.client, lastID)
	b := appendRetry(nil, h.retry(0))
	var encoded [][]byte
	for {
		encoded, after = h.news(p.client, after, encoded[:0])
		if len(encoded) > 0 {
			b = h.appendEvent(b, set, after, encoded)
			h.metrics.frames.Inc()
		}
		if len(b) > 0 {
			if err := out.send(b, time.Now().Add(h.cfg.WriteTimeout)); err != nil {
				h.lost(err)
				return
			}
			b = b[:0]
		}
		select {
		case <-ctx.Done():
			return
		case <-p.quit:
			if p.wait > 0 {
				_ = out.send(appendRetry(b, p.wait), time.Now().Add(h.cfg.WriteTimeout))
			}
			return
		case <-p.due:
			b = append(b, heartbeat...)
		case <-p.fresh:
		}
	}
}

// lost counts a client whose connection failed because it was too slow.
func (h *Hub) lost(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		h.metrics.slow.Inc()
	}
}

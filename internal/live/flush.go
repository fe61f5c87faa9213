package live

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	chunk = 256 // clients that a writer takes at a time
	// breath is after how many writes a writer lets others run: writes are too short
	// for the scheduler to notice them, and requests would wait for all of them.
	breath = 16
)

// flushing is the memory of one flush, kept for the next.
type flushing struct {
	touched []*audience
	jobs    []job
	encoded [][]byte
	clients []*client
}

// job is one frame and some of those who get it.
type job struct {
	frame
	encoded [][]byte
	clients []*client
}

// tick flushes, and tells clients the time, once per interval.
func (h *Hub) tick(ctx context.Context) {
	ticker := time.NewTicker(h.cfg.Interval)
	defer ticker.Stop()
	checked := time.Now()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		h.flush()
		h.beat(now, n%h.beats())
		if h.cfg.Recheck > 0 && now.Sub(checked) >= h.cfg.Recheck {
			checked = now
			h.recheckAll()
		}
	}
}

// flush publishes what changed and offers it to everyone who watches it.
func (h *Hub) flush() {
	start := time.Now()
	f := &h.flushing
	if !h.publish(f) {
		return
	}
	var next atomic.Int64
	work := func() {
		var event []byte
		for {
			i := int(next.Add(1)) - 1
			if i >= len(f.jobs) {
				return
			}
			j := &f.jobs[i]
			event = h.appendEvent(event[:0], j.set, j.to, j.encoded)
			for n, c := range j.clients {
				c.offer(j.frame, event)
				if n%breath == breath-1 {
					runtime.Gosched()
				}
			}
		}
	}
	var wg sync.WaitGroup
	for range min(h.cfg.Writers, len(f.jobs)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	clear(f.jobs)
	clear(f.encoded)
	clear(f.clients)
	h.metrics.flushes.Observe(time.Since(start).Seconds())
}

// publish moves the sequence on and lists the frames of this flush. It reports
// whether there is any.
func (h *Hub) publish(f *flushing) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.dirty) == 0 {
		return false
	}
	h.seq++
	f.touched, f.jobs, f.encoded, f.clients = f.touched[:0], f.jobs[:0], f.encoded[:0], f.clients[:0]
	for i, e := range h.dirty {
		e.publish(h.seq)
		for a := range e.audiences {
			if !a.queued {
				a.queued = true
				f.touched = append(f.touched, a)
			}
		}
		h.dirty[i] = nil
	}
	h.dirty = h.dirty[:0]
	for i, a := range f.touched {
		h.list(f, a)
		f.touched[i] = nil
	}
	return len(f.jobs) > 0
}

// list adds the frame of one audience.
func (h *Hub) list(f *flushing, a *audience) {
	first := len(f.encoded)
	f.encoded = a.news(a.at, f.encoded)
	encoded := f.encoded[first:]
	a.at, a.queued = h.seq, false
	for from := 0; from < len(a.clients); from += chunk {
		n := len(f.clients)
		f.clients = append(f.clients, a.clients[from:min(from+chunk, len(a.clients))]...)
		f.jobs = append(f.jobs, job{frame{a.set, h.seq}, encoded, f.clients[n:]})
	}
}

// beat tells the clients the time. One of every h.beats ticks is each client's own,
// so that heartbeats do not come all at once.
func (h *Hub) beat(now time.Time, turn int) {
	h.mu.Lock()
	h.forget(now)
	clients := h.everyone()
	h.mu.Unlock()
	for _, c := range clients {
		c.tick(now, c.beat == turn)
	}
}

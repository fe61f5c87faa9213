package pebble

import (
	"fmt"
	"sync/atomic"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// request is one call of Apply or ApplyMany on its way through the writer and
// the committer. The caller may leave before done; nobody else reads acks.
type request struct {
	cmds    []like.Command
	acks    []ledger.Ack
	changes int        // facts added and removed
	done    chan error // receives once; has room for it
	since   time.Time  // when it was queued

	// correct, when not nil, is a correction that the writer carries out instead
	// of commands.
	correct *correction
}

func newRequest(cmds []like.Command) *request {
	return &request{
		cmds: cmds,
		acks: make([]ledger.Ack, len(cmds)),
		done: make(chan error, 1),
	}
}

// size is the room that a request takes in the queue.
func (r *request) size() int64 { return int64(max(1, len(r.cmds))) }

// queue holds requests for the writer, bounded by commands and by age.
type queue struct {
	requests chan *request
	limit    int64
	maxAge   time.Duration
	start    time.Time

	length atomic.Int64 // commands waiting
	taken  atomic.Int64 // when the writer last took one, in ns since start
}

func newQueue(length int, maxAge time.Duration) *queue {
	return &queue{
		requests: make(chan *request, length),
		limit:    int64(length),
		maxAge:   maxAge,
		start:    time.Now(),
	}
}

// put queues a request, or refuses it at once with like.ErrOverloaded when the
// queue is full or the writer has not moved for too long.
func (q *queue) put(r *request) error {
	if q.length.Load() == 0 {
		// Nobody waits, so the writer's rest until now is no stall.
		q.taken.Store(int64(time.Since(q.start)))
	}
	if err := q.stalled(); err != nil {
		return err
	}
	if n := q.length.Add(r.size()); n > q.limit && n > r.size() {
		q.length.Add(-r.size())
		return fmt.Errorf("%w: %d commands are waiting", like.ErrOverloaded, q.limit)
	}
	r.since = time.Now()
	q.requests <- r
	return nil
}

// took notes that the writer has taken a request.
func (q *queue) took(r *request) {
	q.length.Add(-r.size())
	q.taken.Store(int64(time.Since(q.start)))
}

// expired reports whether a request has waited too long to be worth its work.
func (q *queue) expired(r *request) error {
	if waited := time.Since(r.since); waited > q.maxAge {
		return fmt.Errorf("%w: waited %v in the queue", like.ErrOverloaded, waited.Round(time.Millisecond))
	}
	return nil
}

// clock returns the time since the queue was made, in ns, and never 0.
func (q *queue) clock() int64 { return max(1, int64(time.Since(q.start))) }

// stalled reports whether requests wait while the writer takes none.
func (q *queue) stalled() error {
	if q.length.Load() == 0 {
		return nil
	}
	if idle := time.Since(q.start) - time.Duration(q.taken.Load()); idle > q.maxAge {
		return fmt.Errorf("%w: the store has not taken a command for %v", like.ErrOverloaded, idle.Round(time.Millisecond))
	}
	return nil
}

func (q *queue) close() { close(q.requests) }

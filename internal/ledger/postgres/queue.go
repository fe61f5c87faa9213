package postgres

import (
	"fmt"
	"sync"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// call is one Apply or ApplyMany, or the part of one that belongs to a shard. The
// writer fills acks and changes and then sends on done; a caller that waits no longer
// reads neither.
type call struct {
	cmds    []like.Command
	acks    []ledger.Ack
	changes int64 // facts that its commands added and removed
	since   time.Time
	done    chan error // holds one
}

func newCall(cmds []like.Command) *call {
	return &call{cmds: cmds, acks: make([]ledger.Ack, len(cmds)), since: time.Now(), done: make(chan error, 1)}
}

// queue holds the calls that no writer has taken yet, oldest first.
type queue struct {
	limit int           // commands
	age   time.Duration // of the oldest call

	turn sync.Mutex    // held by the writer that gathers
	wake chan struct{} // holds one token while the gathering writer has to look

	mu       sync.Mutex
	calls    []*call
	commands int
	refused  uint64
	closed   bool
}

func newQueue(limit int, age time.Duration) *queue {
	return &queue{limit: limit, age: age, wake: make(chan struct{}, 1)}
}

// add queues a call, or says at once why it cannot wait.
func (q *queue) add(c *call) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return fmt.Errorf("postgres ledger: %w", like.ErrClosed)
	case q.commands+len(c.cmds) > q.limit:
		q.refused += uint64(len(c.cmds))
		return fmt.Errorf("postgres ledger: %w: %d commands are waiting", like.ErrOverloaded, q.commands)
	}
	q.calls = append(q.calls, c)
	q.commands += len(c.cmds)
	q.signal()
	return nil
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take waits for calls and returns them when they make a full batch or the first one
// has waited long enough. It returns none after the queue is closed and empty.
func (q *queue) take(full int, wait time.Duration) []*call {
	q.turn.Lock()
	defer q.turn.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		calls, rest := q.cut(full, wait)
		if rest < 0 {
			return calls
		}
		if rest > 0 {
			timer.Reset(rest)
		} else {
			timer.Stop()
		}
		select {
		case <-q.wake:
		case <-timer.C:
		}
	}
}

// cut returns a batch, or how long the first call has still to wait for one; 0 when
// there is no call.
func (q *queue) cut(full int, wait time.Duration) (calls []*call, rest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) == 0 {
		if q.closed {
			return nil, -1
		}
		return nil, 0
	}
	if rest := wait - time.Since(q.calls[0].since); rest > 0 && q.commands < full && !q.closed {
		return nil, rest
	}
	n, commands := 0, 0
	for n < len(q.calls) && (n == 0 || commands+len(q.calls[n].cmds) <= full) {
		commands += len(q.calls[n].cmds)
		n++
	}
	calls = q.calls[:n:n]
	q.calls = q.calls[n:]
	q.commands -= commands
	return calls, -1
}

// expire refuses the calls that have waited too long because every writer is stuck.
func (q *queue) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.calls) > 0 && time.Since(q.calls[0].since) > q.age {
		c := q.calls[0]
		q.calls = q.calls[1:]
		q.commands -= len(c.cmds)
		q.refused += uint64(len(c.cmds))
		c.done <- fmt.Errorf("postgres ledger: %w: waited for more than %s", like.ErrOverloaded, q.age)
	}
}

// close refuses further calls; those that wait are still taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// stats returns the commands that wait, the wait of the oldest, and how many were
// refused since the start.
func (q *queue) stats() (commands int, oldest time.Duration, refused uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) > 0 {
		oldest = time.Since(q.calls[0].since)
	}
	return q.commands, oldest, q.refused
}

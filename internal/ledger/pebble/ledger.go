package pebble

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Ledger is an open store. [Open] makes one; its goroutines end with Close.
type Ledger struct {
	cfg    Config
	lock   *pdb.Lock
	db     *pdb.DB
	marker *marker
	disk   *diskGuard

	manifest      atomic.Pointer[manifestPrefix] // the durable part of the engine's manifest
	manifestMoved chan struct{}                  // holds one token while the marker lacks it

	queue   *queue
	commits chan *commit
	writing atomic.Int64 // when the writer began its batch, in ns as the queue counts; 0 at rest
	syncing atomic.Int64 // when the committer began to sync, likewise
	changes ledger.Broadcast
	repairs sync.Mutex // held from an audit's snapshot to its correction

	started  atomic.Bool
	failure  atomic.Pointer[error]
	counters counters

	calls     calls
	closeOnce sync.Once
	closeErr  error
	workers   sync.WaitGroup
}

var _ ledger.Ledger = (*Ledger)(nil)

// start runs the writer, the committer and the filter's build.
func (l *Ledger) start(last like.Stamp, seq uint64) {
	l.started.Store(true)
	var built chan *filter
	if f := newFilter(l.cfg.FilterBytes); f != nil {
		built = make(chan *filter, 1)
		snap := l.db.NewSnapshot()
		l.workers.Go(func() { built <- buildFilter(l.calls.closing, snap, f) })
	}
	w := &writer{
		ledger: l,
		folder: newFolder(l.db, like.NewClock(l.cfg.Now, last), built),
		seq:    seq,
	}
	l.workers.Go(w.run)
	l.workers.Go(l.runCommitter)
}

// Close implements [ledger.Ledger].
func (l *Ledger) Close() error {
	l.closeOnce.Do(func() {
		l.calls.close()
		l.queue.close()
		l.changes.Close()
		l.workers.Wait()
		l.closeErr = errors.Join(l.closeStore(), l.marker.close(), l.lock.Close())
	})
	return l.closeErr
}

// closeStore closes the engine, and says when the ledger had failed before.
func (l *Ledger) closeStore() error {
	return errors.Join(l.failed(), storeError(l.db.Close()))
}

// Ready implements [ledger.Ledger].
func (l *Ledger) Ready(ctx context.Context) error {
	end, err := l.calls.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := l.failed(); err != nil {
		return err
	}
	if err := errors.Join(l.queue.stalled(), l.stalled()); err != nil {
		return err
	}
	return l.disk.check()
}

// fail ends the ledger: what the log holds is unknown, so nothing is
// acknowledged any more and the process must end.
func (l *Ledger) fail(err error) {
	err = fmt.Errorf("%w: store failed: %w", like.ErrUnavailable, err)
	if l.failure.CompareAndSwap(nil, &err) {
		l.cfg.Logger.Error("the store failed; the process must end", "error", err)
		l.cfg.OnFatal(err)
	}
}

// failLog ends the ledger for want of a log. While it is being opened, the error
// itself says so.
func (l *Ledger) failLog(err error) {
	if l.started.Load() {
		l.fail(fmt.Errorf("create a log: %w", err))
	}
}

func (l *Ledger) failed() error {
	if p := l.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// storeError wraps what the engine reports with a kind.
func storeError(err error) error {
	switch {
	case err == nil:
		return nil
	case pdb.IsCorruptionError(err):
		return fmt.Errorf("%w: %w", like.ErrCorrupt, err)
	case errors.Is(err, pdb.ErrClosed):
		return like.ErrClosed
	default:
		return fmt.Errorf("%w: %w", like.ErrUnavailable, err)
	}
}

// calls counts the calls under way, so that Close can wait for them.
type calls struct {
	mu      sync.Mutex
	closed  bool
	active  sync.WaitGroup
	closing context.Context // done once Close was called; long reads watch it
	cancel  context.CancelCauseFunc
}

func (c *calls) init() {
	c.closing, c.cancel = context.WithCancelCause(context.Background())
}

// begin admits a call, which must call end when it returns.
func (c *calls) begin(ctx context.Context) (end func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, like.ErrClosed
	}
	c.active.Add(1)
	return c.active.Done, nil
}

// close admits no further call and waits for the ones under way.
func (c *calls) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(like.ErrClosed)
	c.active.Wait()
}

// interrupted reports why a long read must stop, if it must.
func (c *calls) interrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.closing.Err() != nil {
		return context.Cause(c.closing)
	}
	return nil
}

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
	audits  turn        // one audit at a time
	backups turn        // one backup at a time
	frozen  atomic.Bool // whether the ledger stands still; see Freeze

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
		folder: newFolder(l.db, like.NewClock(l.cfg.Now, last), gate{built: built, room: int(l.cfg.FilterBytes)}),
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

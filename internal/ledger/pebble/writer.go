package pebble

import (
	"context"
	"errors"
	"slices"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

const (
	// maxGather bounds the commands of one batch; with the last request's it stays
	// below the generation of the total cache, so no total that a batch touches
	// can be dropped before the batch is written.
	maxGather = 8 << 10
	// commitDepth is how many applied batches may wait for the log.
	commitDepth = 4
)

// Apply implements [ledger.Writer].
func (l *Ledger) Apply(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
	acks, err := l.accept(ctx, []like.Command{cmd})
	if err != nil {
		return ledger.Ack{}, err
	}
	return acks[0], nil
}

// ApplyMany implements [ledger.Writer]. The commands are copied, because the
// writer may read them after a call whose context is done.
func (l *Ledger) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	return l.accept(ctx, slices.Clone(cmds))
}

// accept checks and submits commands that the ledger owns from now on.
func (l *Ledger) accept(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	end, err := l.calls.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := ledger.CheckCommands(cmds, like.StampOf(l.cfg.Now())); err != nil {
		return nil, err
	}
	if len(cmds) == 0 {
		return nil, nil
	}
	r := newRequest(cmds)
	if err := l.submit(ctx, r); err != nil {
		return nil, err
	}
	return r.acks, nil
}

// submit queues a request and waits until it is durable. When the context ends
// first the request goes on without its caller.
func (l *Ledger) submit(ctx context.Context, r *request) error {
	if err := l.failed(); err != nil {
		return err
	}
	if err := l.refused(r); err != nil {
		return err
	}
	err := l.stalled()
	if err == nil {
		err = l.queue.put(r)
	}
	if err != nil {
		l.counters.refused.Add(int64(len(r.cmds)))
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// commit is one applied batch on its way to the committer.
type commit struct {
	requests []*request
	batch    *pdb.Batch // nil when nothing changed
	seq      uint64     // of the last batch applied so far, this one included
	totals   []like.Total
	commands int
	changes  int
}

// writer is the one goroutine that decides what a command changes.
type writer struct {
	ledger *Ledger
	folder *folder
	seq    uint64
	value  []byte
}

// run writes batches until the queue is closed and empty.
func (w *writer) run() {
	defer close(w.ledger.commits)
	for first := range w.ledger.queue.requests {
		c := &commit{requests: w.gather(first)}
		w.ledger.writing.Store(w.ledger.queue.clock())
		err := w.apply(c)
		w.ledger.writing.Store(0)
		if err != nil {
			w.folder.abandon()
			answer(c.requests, err)
			continue
		}
		w.ledger.commits <- c
	}
}

// gather takes what waits in the queue, without waiting for more: while earlier
// batches are being synced, the next one collects.
func (w *writer) gather(first *request) []*request {
	requests := make([]*request, 0, 64)
	size := 0
	for r := first; r != nil; {
		w.ledger.queue.took(r)
		if err := w.ledger.queue.expired(r); err != nil {
			w.ledger.counters.refused.Add(int64(len(r.cmds)))
			r.done <- err
		} else {
			requests = append(requests, r)
			size += len(r.cmds)
		}
		if size >= maxGather {
			break
		}
		select {
		case r = <-w.ledger.queue.requests:
		default:
			r = nil
		}
	}
	return requests
}

// apply folds the requests of a commit and applies the batch, without waiting
// for the log.
func (w *writer) apply(c *commit) error {
	if err := w.ledger.failed(); err != nil {
		return err
	}
	w.folder.begin()
	batch := w.ledger.db.NewBatch()
	c.requests = slices.DeleteFunc(c.requests, func(r *request) bool {
		// What one request cannot read fails that request alone.
		err := w.fold(c, batch, r)
		if err != nil {
			r.done <- err
		}
		return err != nil
	})
	if err := w.folder.write(batch); err != nil {
		return errors.Join(storeError(err), batch.Close())
	}
	c.totals = w.folder.changed()
	if batch.Empty() {
		c.seq = w.seq
		return batch.Close()
	}
	if err := w.ledger.disk.check(); err != nil {
		return errors.Join(err, batch.Close())
	}
	return w.applyBatch(c, batch)
}

func (w *writer) fold(c *commit, batch *pdb.Batch, r *request) error {
	if err := w.ledger.refused(r); err != nil {
		return err
	}
	if r.correct != nil {
		return w.folder.correct(batch, r.correct)
	}
	r.changes = 0
	for i := range r.cmds {
		ack, delta, err := w.folder.fold(&r.cmds[i])
		if err != nil {
			return err
		}
		r.acks[i] = ack
		r.changes += max(delta, -delta)
	}
	c.commands += len(r.cmds)
	c.changes += r.changes
	return nil
}

func (w *writer) applyBatch(c *commit, batch *pdb.Batch) error {
	w.value = sequenceValue(w.value[:0], w.seq+1, w.folder.clock.Last())
	if err := batch.Set(metaSequence, w.value, nil); err != nil {
		return errors.Join(storeError(err), batch.Close())
	}
	if err := w.ledger.db.ApplyNoSyncWait(batch, pdb.Sync); err != nil {
		// Part of the batch may be in the log, so nothing may follow it.
		w.ledger.fail(err)
		return w.ledger.failed()
	}
	w.seq++
	c.seq, c.batch = w.seq, batch
	return nil
}

func answer(requests []*request, err error) {
	for _, r := range requests {
		r.done <- err
	}
}

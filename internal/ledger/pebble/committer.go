package pebble

import (
	"fmt"
	"sync/atomic"
	"time"

	"likewise/internal/like"
)

// runCommitter makes applied batches durable in order and answers for them. It owns
// the marker.
func (l *Ledger) runCommitter() {
	group := make([]*commit, 0, commitDepth)
	for {
		select {
		case first, ok := <-l.commits:
			if !ok {
				return
			}
			l.finish(l.takeCommits(append(group[:0], first)))
		case <-l.manifestMoved:
			if l.failed() == nil {
				l.mark(l.marker.acked.Load())
			}
		}
	}
}

func (l *Ledger) finish(group []*commit) {
	l.syncing.Store(l.queue.clock())
	err := l.makeDurable(group)
	l.syncing.Store(0)
	for _, c := range group {
		if err == nil {
			l.changes.Publish(c.totals)
			l.observe(c)
		}
		answer(c.requests, err)
	}
}

// takeCommits adds the batches that are applied already: they share one marker.
func (l *Ledger) takeCommits(group []*commit) []*commit {
	for len(group) < commitDepth {
		select {
		case c, ok := <-l.commits:
			if !ok {
				return group
			}
			group = append(group, c)
		default:
			return group
		}
	}
	return group
}

// makeDurable waits for the log, then syncs the marker. A failed sync is never
// repeated: the kernel may have dropped the pages and report success next time.
func (l *Ledger) makeDurable(group []*commit) error {
	for _, c := range group {
		if c.batch == nil {
			continue
		}
		if err := c.batch.SyncWait(); err != nil {
			l.fail(err)
		}
	}
	if l.failed() == nil {
		l.mark(group[len(group)-1].seq)
	}
	if err := l.failed(); err != nil {
		return err
	}
	for _, c := range group {
		if c.batch != nil {
			// Close returns the batch to the engine's pool; it holds no resource.
			_ = c.batch.Close()
		}
	}
	return nil
}

// mark writes the marker.
func (l *Ledger) mark(seq uint64) {
	if err := l.marker.write(seq, *l.manifest.Load()); err != nil {
		l.fail(fmt.Errorf("write the marker: %w", err))
	}
}

// noteManifest is told how much of the manifest is durable, and has the committer
// write it to the marker.
func (l *Ledger) noteManifest(p manifestPrefix) {
	l.manifest.Store(&p)
	select {
	case l.manifestMoved <- struct{}{}:
	default:
	}
}

// stalled reports whether the store has been at one piece of work for too long.
func (l *Ledger) stalled() error {
	for _, began := range []int64{l.writing.Load(), l.syncing.Load()} {
		took := time.Since(l.queue.start) - time.Duration(began)
		if began != 0 && took > l.cfg.QueueAge {
			return fmt.Errorf("%w: the disk has not answered for %v", like.ErrOverloaded, took.Round(time.Millisecond))
		}
	}
	return nil
}

func (l *Ledger) observe(c *commit) {
	l.counters.commits.Add(1)
	l.counters.commands.Add(int64(c.commands))
	l.counters.changes.Add(int64(c.changes))
	if l.cfg.OnCommit == nil || len(c.requests) == 0 {
		return
	}
	l.cfg.OnCommit(Commit{
		Commands: c.commands,
		Changes:  c.changes,
		Wait:     time.Since(c.requests[0].since),
	})
}

// counters are what the ledger counts about itself since it was opened.
type counters struct {
	commits, commands, changes, refused atomic.Int64
}

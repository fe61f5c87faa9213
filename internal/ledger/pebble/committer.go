package pebble

import (
	"sync/atomic"
	"time"
)

// runCommitter makes applied batches durable in order and answers for them.
func (l *Ledger) runCommitter() {
	group := make([]*commit, 0, commitDepth)
	for first := range l.commits {
		group = l.takeCommits(append(group[:0], first))
		err := l.makeDurable(group)
		for _, c := range group {
			if err == nil {
				l.changes.Publish(c.totals)
				l.observe(c)
			}
			answer(c.requests, err)
		}
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
	if err := l.failed(); err != nil {
		return err
	}
	if seq := group[len(group)-1].seq; seq != l.marker.acked.Load() {
		if err := l.marker.write(seq); err != nil {
			l.fail(err)
			return l.failed()
		}
	}
	for _, c := range group {
		if c.batch != nil {
			// Close returns the batch to the engine's pool; it holds no resource.
			_ = c.batch.Close()
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

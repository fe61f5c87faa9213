package postgres

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

var (
	_ ledger.Ledger  = (*Ledger)(nil)
	_ ledger.Sharded = (*Ledger)(nil)
)

// Ledger is a ledger in one or several databases. It owns its connections and
// goroutines until Close.
type Ledger struct {
	cfg       Config
	shards    []*shard // by their number
	sockets   *sockets
	broadcast ledger.Broadcast
	newest    atomic.Int64
	life      context.Context // done when Close begins
	end       context.CancelFunc
	searches  sync.WaitGroup // for replicas that were away
	closing   sync.Once
	closed    atomic.Bool
}

// check says why a call cannot be served.
func (l *Ledger) check(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case l.closed.Load():
		return fmt.Errorf("postgres ledger: %w", like.ErrClosed)
	}
	return nil
}

// Close implements [ledger.Ledger]. What is queued is applied, or given up after
// QueueAge when the database is away; so are reads under way.
func (l *Ledger) Close() error {
	l.closing.Do(func() {
		l.closed.Store(true)
		l.end()
		l.broadcast.Close()
		l.searches.Wait()
		l.each((*shard).finish)
		late := time.AfterFunc(l.cfg.QueueAge, l.sockets.cut)
		defer late.Stop()
		l.each((*shard).release)
	})
	return nil
}

// each does something with all shards at once.
func (l *Ledger) each(do func(*shard)) {
	var wg sync.WaitGroup
	for _, s := range l.shards {
		wg.Go(func() { do(s) })
	}
	wg.Wait()
}

// Ready implements [ledger.Ledger]: every database has answered lately.
func (l *Ledger) Ready(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	for _, s := range l.shards {
		silence := time.Since(time.Unix(0, s.alive.Load()))
		if silence > max(2*time.Second, 4*l.cfg.DrainInterval) {
			return fmt.Errorf("postgres ledger: %w: database %d has not answered for %s", like.ErrUnavailable, s.number+1, silence.Round(time.Second))
		}
	}
	return nil
}

// Feed implements [ledger.Feeder].
func (l *Ledger) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return l.broadcast.Feed(ctx)
}

// Apply implements [ledger.Writer].
func (l *Ledger) Apply(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
	cmds := []like.Command{cmd}
	if err := l.accepts(ctx, cmds); err != nil {
		return ledger.Ack{}, err
	}
	c := newCall(cmds)
	if err := l.shard(cmd.Item).submit(ctx, c); err != nil {
		return ledger.Ack{}, err
	}
	return c.acks[0], nil
}

// ApplyMany implements [ledger.Writer]. Commands of one database are applied together.
func (l *Ledger) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	acks, _, err := l.applyMany(ctx, cmds)
	return acks, err
}

// applyMany also returns how many facts were added and removed.
func (l *Ledger) applyMany(ctx context.Context, cmds []like.Command) (acks []ledger.Ack, changes int64, err error) {
	if err := l.accepts(ctx, cmds); err != nil || len(cmds) == 0 {
		return nil, 0, err
	}
	places := l.places(len(cmds), func(k int) like.Item { return cmds[k].Item })
	calls := make([]*call, len(l.shards))
	errs := make([]error, len(l.shards))
	var wg sync.WaitGroup
	for n, mine := range places {
		if len(mine) == 0 {
			continue
		}
		part := make([]like.Command, len(mine))
		for k, place := range mine {
			part[k] = cmds[place]
		}
		calls[n] = newCall(part)
		wg.Go(func() { errs[n] = l.shards[n].submit(ctx, calls[n]) })
	}
	wg.Wait()
	acks = make([]ledger.Ack, len(cmds))
	for n, mine := range places {
		if errs[n] != nil {
			return nil, 0, errs[n]
		}
		for k, place := range mine {
			acks[place] = calls[n].acks[k]
		}
		if len(mine) > 0 {
			changes += calls[n].changes
		}
	}
	return acks, changes, nil
}

func (l *Ledger) accepts(ctx context.Context, cmds []like.Command) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	return ledger.CheckCommands(cmds, l.cfg.stampNow())
}

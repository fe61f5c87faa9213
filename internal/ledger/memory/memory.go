// Package memory is the ledger in plain maps under one mutex: the executable
// specification of package ledger, and the oracle that other ledgers are compared
// with. It is complete, keeps nothing beyond its process, and prefers being
// obviously right to being fast. With [Config.Lag] its totals trail the
// acknowledgements and move in another order than commands were accepted in, as
// those of a ledger that drains or folds in the background do.
package memory

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

var _ ledger.Ledger = (*Ledger)(nil)

// Config is the settings of a ledger. The zero value is a ledger whose totals
// move with the acknowledgement.
type Config struct {
	// Now is the wall clock that stamps come from; nil is time.Now.
	Now func() time.Time
	// Lag bounds how long after its acknowledgement a change moves its total; each
	// change draws its own delay from the upper half. 0 moves it at once.
	Lag time.Duration
	// Seed fixes the delays that changes draw.
	Seed uint64
}

// Ledger is a ledger in memory.
type Ledger struct {
	cfg       Config
	broadcast ledger.Broadcast
	ticks     sync.WaitGroup // calls of tick that are due or under way

	mu     sync.Mutex
	closed bool
	thaw   context.CancelCauseFunc // ends the standstill under way; nil without one
	clock  *like.Clock
	store  *store
	timer  *time.Timer // calls tick when the next change falls due
}

// New returns an empty ledger.
func New(cfg Config) *Ledger {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return open(cfg, newStore(rand.New(rand.NewPCG(cfg.Seed, 0))))
}

// Reopen closes l and returns a new ledger over what l held, as a restarted
// process finds its store. Changes that have not moved their total yet are still
// due. Only the first Reopen of a ledger is meaningful.
func (l *Ledger) Reopen() *Ledger {
	l.Close()
	return open(l.cfg, l.store)
}

func open(cfg Config, s *store) *Ledger {
	l := &Ledger{cfg: cfg, clock: like.NewClock(cfg.Now, s.last), store: s}
	l.timer = time.AfterFunc(time.Hour, l.tick)
	l.timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	return l
}

// Ready reports like.ErrClosed after Close, else nil.
func (l *Ledger) Ready(ctx context.Context) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	l.mu.Unlock()
	return nil
}

// Close ends all feeds and refuses further calls.
func (l *Ledger) Close() error {
	l.mu.Lock()
	l.closed = true
	if l.thaw != nil {
		l.thaw(fmt.Errorf("memory ledger: %w", like.ErrClosed))
	}
	if l.timer.Stop() {
		l.ticks.Done()
	}
	l.mu.Unlock()
	l.broadcast.Close()
	l.ticks.Wait()
	return nil
}

// lock takes the mutex for one call and moves every total that is due, or says
// why the call cannot be served and leaves the mutex free.
func (l *Ledger) lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return fmt.Errorf("memory ledger: %w", like.ErrClosed)
	}
	l.settle()
	return nil
}

// settle moves every total that is due and sets the timer for the next one. The
// mutex is held.
func (l *Ledger) settle() {
	l.broadcast.Publish(l.store.drain(time.Now()))
	if len(l.store.pending) > 0 && !l.timer.Reset(time.Until(l.store.pending[0].due)) {
		l.ticks.Add(1)
	}
}

// tick settles for feeds, which wait without calling.
func (l *Ledger) tick() {
	defer l.ticks.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.settle()
	}
}

// Feed implements [ledger.Feeder].
func (l *Ledger) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return l.broadcast.Feed(ctx)
}

// Apply implements [ledger.Writer].
func (l *Ledger) Apply(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
	acks, err := l.ApplyMany(ctx, []like.Command{cmd})
	if err != nil {
		return ledger.Ack{}, err
	}
	return acks[0], nil
}

// ApplyMany implements [ledger.Writer]; all commands are applied or none.
func (l *Ledger) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	if err := l.lockToWrite(ctx); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	if err := ledger.CheckCommands(cmds, l.clock.Now()); err != nil {
		return nil, err
	}
	defer l.settle()
	acks := make([]ledger.Ack, len(cmds))
	for k, cmd := range cmds {
		acks[k] = l.apply(cmd)
	}
	return acks, nil
}

// apply folds one valid command. The mutex is held.
func (l *Ledger) apply(cmd like.Command) ledger.Ack {
	at := cmd.At
	if at == 0 {
		at = l.clock.Next()
		l.store.last = at
	}
	p := pair{cmd.Item, cmd.User}
	before := l.store.state(p)
	after, delta := like.Fold(before, cmd.Op, at)
	if delta != 0 {
		l.store.set(p, before, after)
		l.count(p, int64(delta))
	}
	return l.store.ack(p)
}

// count moves the total of a pair's item now, or when its delay has passed.
func (l *Ledger) count(p pair, delta int64) {
	if l.cfg.Lag == 0 {
		l.broadcast.Publish([]like.Total{l.store.move(p.item, delta)})
		return
	}
	l.store.delay(p, delta, time.Now(), l.cfg.Lag)
}

package move

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"likewise/internal/like"
)

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second

	// fewItems is a number of changed items that a pass settles in about the time
	// that a client waits anyway.
	fewItems = 1000
	// maxPasses bounds the passes before the source stands still.
	maxPasses = 8
	// maxAttempts bounds the comparisons that do not bring the two nearer.
	maxAttempts = 4
)

// mover is one run. Its goroutines end with it.
type mover struct {
	cfg     Config
	source  Source
	target  Target
	show    *display
	changes *changes
	report  Report
	copied  atomic.Int64
	changed atomic.Int64

	bucketBits int // the logarithm of the number of sums of each side
}

// Run makes target hold exactly the facts of source. Errors: [ErrNotEmpty] for a
// target that holds facts when cfg.Resume is not set, [ErrDiffers] when the two
// cannot be made equal, the kinds of package like, and what cfg.Switch returns. After
// any of them the source moves on, and the run can be repeated with cfg.Resume.
func Run(ctx context.Context, cfg Config, source Source, target Target) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	return newMover(cfg, source, target).move(ctx)
}

func newMover(cfg Config, source Source, target Target) *mover {
	return &mover{
		cfg: cfg, source: source, target: target, show: newDisplay(cfg),
		changes: newChanges(maxChanged), bucketBits: bucketBits,
	}
}

func (m *mover) move(ctx context.Context) (Report, error) {
	defer m.show.close()
	following, stop := context.WithCancel(ctx)
	var followed sync.WaitGroup
	followed.Go(func() { m.follow(following) })
	unfollow := func() { stop(); followed.Wait() }
	defer unfollow()
	err := m.run(ctx, unfollow)
	return m.reported(), err
}

// run carries out the stages. It calls unfollow when it does not matter any more what
// changes.
func (m *mover) run(ctx context.Context, unfollow func()) error {
	select {
	case <-m.changes.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := m.copyMissing(ctx); err != nil {
		return err
	}
	if err := m.catchUp(ctx); err != nil {
		return err
	}
	if !m.cfg.Freeze {
		return m.verifyMoving(ctx)
	}
	return m.source.Freeze(ctx, func(ctx context.Context) error {
		begin := time.Now()
		m.show.notef("the source stands still")
		if err := m.finish(ctx); err != nil {
			return err
		}
		unfollow()
		m.report.Frozen = time.Since(begin)
		if m.cfg.Switch == nil {
			return nil
		}
		return m.cfg.Switch(ctx, m.reported())
	})
}

func (m *mover) reported() Report {
	r := m.report
	r.Copied, r.Changed = m.copied.Load(), m.changed.Load()
	return r
}

// copyMissing sends the target the source's facts: all of them, or those of which
// an earlier run left sums that differ.
func (m *mover) copyMissing(ctx context.Context) error {
	wanted := func(like.Item) bool { return true }
	switch empty, err := m.targetEmpty(ctx); {
	case err != nil:
		return err
	case !empty && !m.cfg.Resume:
		return ErrNotEmpty
	case !empty:
		m.changes.beginAll()
		u, err := m.compareSums(ctx)
		if err != nil || u.buckets == 0 {
			return err
		}
		wanted = u.has
		m.changes.oweAll()
	}
	defer m.show.stage("copying")()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(m.cfg.InFlight)
	var batch []like.Command
	send := func() {
		cmds := batch
		batch = nil
		group.Go(func() error {
			m.copied.Add(int64(len(cmds)))
			return m.apply(ctx, cmds)
		})
	}
	err := m.eachFact(ctx, wanted, func(f like.Fact) {
		if batch == nil {
			batch = make([]like.Command, 0, m.cfg.BatchSize)
		}
		if batch = append(batch, like.Command{Item: f.Item, User: f.User, Op: like.OpLike, At: f.Since}); len(batch) == m.cfg.BatchSize {
			send()
		}
	})
	if len(batch) > 0 && err == nil {
		send()
	}
	if failed := group.Wait(); failed != nil {
		return failed // which ended the export too
	}
	return err
}

func (m *mover) eachFact(ctx context.Context, wanted func(like.Item) bool, use func(like.Fact)) error {
	for f, err := range m.source.Export(ctx) {
		if err != nil {
			return named("source", err)
		}
		if m.show.count(1); wanted(f.Item) {
			use(f)
		}
	}
	return nil
}

func (m *mover) targetEmpty(ctx context.Context) (bool, error) {
	for _, err := range m.target.Export(ctx) {
		return false, named("target", err)
	}
	return true, nil
}

// catchUp compares what may differ while the source goes on, until little is left
// or it does not get less.
func (m *mover) catchUp(ctx context.Context) error {
	before := 0
	for k := range maxPasses {
		if m.changes.owesAll() {
			if _, err := m.compareAll(ctx); err != nil {
				return err
			}
		}
		items := m.changes.take()
		differed, err := m.pass(ctx, items)
		if err != nil {
			return err
		}
		m.changes.add(differed...)
		if !m.changes.owesAll() && (len(items) <= fewItems || k > 0 && len(items) >= before) {
			return nil
		}
		before = len(items)
	}
	return nil
}

// finish makes the two equal while the source stands still.
func (m *mover) finish(ctx context.Context) error {
	for begin := time.Now(); ; {
		left := m.cfg.Settle - min(m.changes.silence(), time.Since(begin))
		if left <= 0 {
			break
		}
		if err := rest(ctx, left); err != nil {
			return err
		}
	}
	for try := (attempts{}); !try.exhausted(); {
		left, err := m.settle(ctx)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return differs(left)
		}
		if !m.cfg.VerifyAll && !m.changes.owesAll() {
			return nil
		}
		n, err := m.compareAll(ctx)
		if n == 0 {
			return err
		}
		try.left(n)
	}
	return differs(nil)
}

// settle passes the changed items until none differs, and returns those that do not
// become equal.
func (m *mover) settle(ctx context.Context) (left []like.Item, err error) {
	for try := (attempts{}); !try.exhausted(); {
		left, err = m.pass(ctx, m.changes.take())
		if err != nil || len(left) == 0 {
			return nil, err
		}
		m.changes.add(left...)
		try.left(len(left))
	}
	return left, nil
}

// attempts counts those in a row after which no less differed than ever before.
type attempts struct{ count, least int }

func (a *attempts) left(n int) {
	if a.count++; a.least == 0 || n < a.least {
		a.count, a.least = 0, n
	}
}

func (a *attempts) exhausted() bool { return a.count >= maxAttempts }

// verifyMoving compares everything while the source goes on: what differs and does
// not change must not differ again.
func (m *mover) verifyMoving(ctx context.Context) error {
	if _, err := m.compareAll(ctx); err != nil {
		return err
	}
	items := m.changes.take()
	if m.changes.owesAll() {
		return fmt.Errorf("%w: more changes than can be followed, so that nothing is sure until the source stands still", like.ErrUnavailable)
	}
	for range maxAttempts {
		differed, err := m.pass(ctx, items)
		if err != nil {
			return err
		}
		if err := rest(ctx, m.cfg.Settle); err != nil {
			return err
		}
		if items = m.changes.still(differed); len(items) == 0 {
			return nil
		}
	}
	return differs(items)
}

func differs(items []like.Item) error {
	if len(items) == 0 {
		return fmt.Errorf("%w, and not always in the same items: does somebody else write to the target?", ErrDiffers)
	}
	return fmt.Errorf("%w in %d items, of which %v is one", ErrDiffers, len(items), items[0])
}

// apply sends commands to the target.
func (m *mover) apply(ctx context.Context, cmds []like.Command) error {
	return named("target", m.patiently(ctx, func() error {
		_, err := m.target.ApplyMany(ctx, cmds)
		return err
	}))
}

// patiently repeats a call that finds a ledger busy or away.
func (m *mover) patiently(ctx context.Context, call func() error) error {
	begin, pause := time.Now(), firstPause
	for {
		err := call()
		if !errors.Is(err, like.ErrUnavailable) && !errors.Is(err, like.ErrOverloaded) || time.Since(begin)+pause > m.cfg.Patience {
			return err
		}
		if err := rest(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

// rest waits, unless ctx ends first.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// named says whose error it is.
func named(side string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", side, err)
}

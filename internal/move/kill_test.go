package move

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

var errKilled = errors.New("the mover died")

// mortal counts the calls of a mover and ends its context at one of them.
type mortal struct {
	calls atomic.Int64
	last  int64
	kill  context.CancelCauseFunc
}

func (k *mortal) call() {
	if k.calls.Add(1) == k.last {
		k.kill(errKilled)
	}
}

func (k *mortal) facts(facts iter.Seq2[like.Fact, error]) iter.Seq2[like.Fact, error] {
	return func(yield func(like.Fact, error) bool) {
		k.call()
		n := 0
		for f, err := range facts {
			if n++; n%20 == 0 {
				k.call()
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

type mortalSource struct {
	Source
	*mortal
}

func (s mortalSource) Export(ctx context.Context) iter.Seq2[like.Fact, error] {
	return s.facts(s.Source.Export(ctx))
}

func (s mortalSource) Likers(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
	s.call()
	return s.Source.Likers(ctx, item, after, n)
}

func (s mortalSource) Freeze(ctx context.Context, while func(context.Context) error) error {
	s.call()
	return s.Source.Freeze(ctx, func(ctx context.Context) error {
		s.call()
		return while(ctx)
	})
}

type mortalTarget struct {
	Target
	*mortal
}

func (s mortalTarget) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	s.call()
	acks, err := s.Target.ApplyMany(ctx, cmds)
	s.call()
	return acks, err
}

// TestKilledAtEveryStep kills the mover at each of its calls, lets the source move
// on, and moves again.
func TestKilledAtEveryStep(t *testing.T) {
	last := int64(1)
	for ; ; last++ {
		survived := false
		t.Run(fmt.Sprint("call ", last), func(t *testing.T) { survived = testKilled(t, last) })
		if survived || t.Failed() {
			break
		}
	}
	if last < 50 {
		t.Errorf("only %d steps", last)
	}
	t.Logf("%d steps", last)
}

func testKilled(t *testing.T, last int64) (survived bool) {
	source, target := open(t, "memory"), open(t, "memory")
	c := crowd{ledger: source, users: 30, items: 10}
	c.fill(t, 400, 1)
	cfg := config()
	cfg.Settle, cfg.Resume, cfg.BatchSize = time.Millisecond, true, 10
	ctx, kill := context.WithCancelCause(t.Context())
	defer kill(nil)
	k := &mortal{last: last, kill: kill}
	switched := false
	cfg.Switch = func(ctx context.Context, _ Report) error {
		switched = true
		k.call()
		return context.Cause(ctx)
	}
	m := newMover(cfg, mortalSource{source.(Source), k}, mortalTarget{target, k})
	m.bucketBits = 3
	_, err := m.move(ctx)
	if survived = err == nil; !survived && !errors.Is(err, errKilled) {
		t.Errorf("killed at call %d: %v", last, err)
	}
	if switched {
		sameFacts(t, source, target)
	}
	c.fill(t, 50, uint64(last)) // the source is not frozen any more
	cfg.Switch = nil
	if _, err := run(t.Context(), cfg, source, target); err != nil {
		t.Errorf("the second run after call %d: %v", last, err)
	}
	sameFacts(t, source, target)
	return survived
}

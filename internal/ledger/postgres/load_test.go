package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

const loadItems = 6

// load is users who like and unlike items through several nodes, each one its own
// pairs, and send every command again until it is acknowledged.
type load struct {
	tb    testing.TB
	nodes []*Ledger
	stop  context.CancelFunc
	users sync.WaitGroup

	acked  atomic.Int64
	failed atomic.Int64

	mu     sync.Mutex
	states map[pair]like.State // as acknowledged last
}

// startLoad lets n users begin. The caller ends them with finish.
func startLoad(tb testing.TB, seed uint64, n int, nodes ...*Ledger) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{tb: tb, nodes: nodes, stop: stop, states: map[pair]like.State{}}
	for u := range n {
		l.users.Go(func() { l.use(ctx, userN(u), rand.New(rand.NewPCG(seed, uint64(u)))) })
	}
	tb.Cleanup(func() {
		stop()
		l.users.Wait()
	})
	return l
}

func (l *load) use(ctx context.Context, user like.User, rng *rand.Rand) {
	for ctx.Err() == nil {
		cmd := like.Command{Item: postN(rng.IntN(loadItems)), User: user, Op: like.OpLike}
		if rng.IntN(2) == 0 {
			cmd.Op = like.OpUnlike
		}
		for {
			ack, err := l.nodes[rng.IntN(len(l.nodes))].Apply(context.Background(), cmd)
			if err == nil {
				l.answered(cmd, ack)
				break
			}
			l.failed.Add(1)
			if !errors.Is(err, like.ErrUnavailable) && !errors.Is(err, like.ErrOverloaded) {
				l.tb.Errorf("%v of %v by %q: %v", cmd.Op, cmd.Item, user, err)
				return
			}
			sleep(l.tb.Context(), 10*time.Millisecond)
		}
	}
}

func (l *load) answered(cmd like.Command, ack ledger.Ack) {
	l.acked.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if ack.State.Liked != (cmd.Op == like.OpLike) {
		l.tb.Errorf("%v of %v by %q is acknowledged with %+v", cmd.Op, cmd.Item, cmd.User, ack)
	}
	l.states[pair{cmd.User, cmd.Item}] = ack.State
}

// goesOn waits until n more commands are acknowledged.
func (l *load) goesOn(n int64) {
	l.tb.Helper()
	from := l.acked.Load()
	eventually(l.tb, "commands are acknowledged", func() bool { return l.acked.Load() >= from+n || l.tb.Failed() })
}

// finish ends the users and demands that facts and totals are what was acknowledged.
func (l *load) finish() {
	l.tb.Helper()
	l.stop()
	l.users.Wait()
	liked := map[pair]like.State{}
	for f, err := range l.nodes[0].Export(l.tb.Context()) {
		if err != nil {
			l.tb.Fatalf("Export: %v", err)
		}
		liked[pair{f.User, f.Item}] = like.State{Liked: true, Since: f.Since}
	}
	counts := map[like.Item]int64{}
	for p, want := range l.states {
		if got := liked[p]; got != want {
			l.tb.Errorf("%v by %q is %+v, acknowledged as %+v", p.item, p.user, got, want)
		}
		delete(liked, p)
		if want.Liked {
			counts[p.item]++
		}
	}
	for p := range liked {
		l.tb.Errorf("%v by %q is liked, and was never acknowledged", p.item, p.user)
	}
	for n := range loadItems {
		totalIs(l.tb, l.nodes[0], postN(n), counts[postN(n)])
	}
	if drifted := drift(l.tb, l.nodes[0]); drifted != nil {
		l.tb.Errorf("drift: %+v", drifted)
	}
	l.tb.Logf("%d commands acknowledged, %d answers were errors", l.acked.Load(), l.failed.Load())
}

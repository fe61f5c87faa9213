package linearizable

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/test/harness"
)

// unsteady is a right ledger at the end of a bad line: everything takes up to a
// millisecond, answers get lost, and commands get lost or come late.
type unsteady struct {
	*memory.Ledger
	late sync.WaitGroup // commands whose client was told that they failed
}

func (u *unsteady) Apply(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
	travel()
	lost := fmt.Errorf("%w: lost", like.ErrUnavailable)
	switch rand.IntN(20) {
	case 0:
		return ledger.Ack{}, lost
	case 1:
		u.late.Go(func() {
			time.Sleep(rand.N(5 * time.Millisecond))
			_, _ = u.Ledger.Apply(context.WithoutCancel(ctx), cmd)
		})
		return ledger.Ack{}, lost
	case 2:
		_, _ = u.Ledger.Apply(ctx, cmd)
		travel()
		return ledger.Ack{}, lost
	}
	defer travel()
	return u.Ledger.Apply(ctx, cmd)
}

func (u *unsteady) Liked(ctx context.Context, user like.User, items []like.Item) ([]like.State, error) {
	travel()
	defer travel()
	return u.Ledger.Liked(ctx, user, items)
}

func (u *unsteady) LikedBy(ctx context.Context, user like.User, after like.Fact, n int) (ledger.Page, error) {
	travel()
	defer travel()
	return u.Ledger.LikedBy(ctx, user, after, n)
}

func travel() { time.Sleep(rand.N(500 * time.Microsecond)) }

// broken is a node that does some operations in its own way.
type broken struct {
	node
	apply   func(context.Context, like.Command) (ledger.Ack, error)
	liked   func(context.Context, like.User, []like.Item) ([]like.State, error)
	likedBy func(context.Context, like.User, like.Fact, int) (ledger.Page, error)
}

func (b *broken) Apply(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
	if b.apply != nil {
		return b.apply(ctx, cmd)
	}
	return b.node.Apply(ctx, cmd)
}

func (b *broken) Liked(ctx context.Context, user like.User, items []like.Item) ([]like.State, error) {
	if b.liked != nil {
		return b.liked(ctx, user, items)
	}
	return b.node.Liked(ctx, user, items)
}

func (b *broken) LikedBy(ctx context.Context, user like.User, after like.Fact, n int) (ledger.Page, error) {
	if b.likedBy != nil {
		return b.likedBy(ctx, user, after, n)
	}
	return b.node.LikedBy(ctx, user, after, n)
}

// snapshot answers with what it read lately.
type snapshot[T any] struct {
	mu    sync.Mutex
	value T
	at    time.Time
}

func (s *snapshot[T]) get(read func() (T, error)) (T, error) {
	s.mu.Lock()
	value, fresh := s.value, time.Since(s.at) < 2*time.Millisecond
	s.mu.Unlock()
	if fresh {
		return value, nil
	}
	value, err := read()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.at = value, time.Now()
	return value, err
}

// mutants are the ways to be wrong that the check has to notice.
var mutants = []struct {
	name   string
	mutate func(*unsteady) broken
}{
	{"sends a command again that was not answered", func(u *unsteady) broken {
		return broken{apply: func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			ack, err := u.Apply(ctx, cmd)
			for err != nil && ctx.Err() == nil {
				ack, err = u.Apply(ctx, cmd)
			}
			return ack, err
		}}
	}},
	{"reads states from a stale snapshot", func(u *unsteady) broken {
		var stale snapshot[[]like.State]
		return broken{liked: func(ctx context.Context, user like.User, items []like.Item) ([]like.State, error) {
			return stale.get(func() ([]like.State, error) { return u.Liked(ctx, user, items) })
		}}
	}},
	{"reads lists from a stale snapshot", func(u *unsteady) broken {
		var stale snapshot[ledger.Page]
		return broken{likedBy: func(ctx context.Context, user like.User, after like.Fact, n int) (ledger.Page, error) {
			return stale.get(func() (ledger.Page, error) { return u.LikedBy(ctx, user, after, n) })
		}}
	}},
	{"acknowledges with the state before", func(u *unsteady) broken {
		return broken{apply: func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			before, _ := u.Ledger.Liked(ctx, cmd.User, []like.Item{cmd.Item})
			ack, err := u.Apply(ctx, cmd)
			ack.State = before[0]
			return ack, err
		}}
	}},
	{"acknowledges with the first stamp after an unlike", func(u *unsteady) broken {
		first := map[like.Item]like.Stamp{}
		var mu sync.Mutex
		return broken{apply: func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			ack, err := u.Apply(ctx, cmd)
			mu.Lock()
			defer mu.Unlock()
			if ack.State.Liked {
				if first[cmd.Item] == 0 {
					first[cmd.Item] = ack.State.Since
				}
				ack.State.Since = first[cmd.Item]
			}
			return ack, err
		}}
	}},
	{"forgets the stamp on a repeat", func(u *unsteady) broken {
		return broken{apply: func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			if cmd.Op == like.OpLike {
				_, _ = u.Ledger.Apply(ctx, like.Command{User: cmd.User, Item: cmd.Item, Op: like.OpUnlike})
			}
			return u.Apply(ctx, cmd)
		}}
	}},
	{"acknowledges before it applies", func(u *unsteady) broken {
		return broken{apply: func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			u.late.Go(func() { _, _ = u.Apply(context.WithoutCancel(ctx), cmd) })
			return ledger.Ack{State: like.State{Liked: cmd.Op == like.OpLike}}, nil
		}}
	}},
	{"loses an acknowledged command", func(u *unsteady) broken {
		return broken{apply: func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			if rand.IntN(10) == 0 {
				travel()
				return ledger.Ack{State: like.State{Liked: cmd.Op == like.OpLike}}, nil
			}
			return u.Apply(ctx, cmd)
		}}
	}},
}

// attempts is how many histories may pass before a mutant is noticed.
const attempts = 50

func TestCheckNoticesMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			for n := range attempts {
				v := tryInMemory(t, uint64(n), func(u *unsteady) node {
					b := m.mutate(u)
					b.node = u
					return &b
				})
				if v.result == porcupine.Illegal {
					t.Logf("noticed in history %d", n+1)
					return
				}
			}
			t.Errorf("not noticed in %d histories", attempts)
		})
	}
}

// TestCheckRaisesNoFalseAlarm has a ledger do everything that it may.
func TestCheckRaisesNoFalseAlarm(t *testing.T) {
	for n := range harness.Size(attempts, 10*attempts) {
		v := tryInMemory(t, uint64(n), func(u *unsteady) node { return u })
		if v.result != porcupine.Ok {
			t.Fatalf("history %d: %v", n, v)
		}
	}
}

// tryInMemory records and checks one history of a ledger in memory, all of whose
// three nodes are made by wrap.
func tryInMemory(t *testing.T, seed uint64, wrap func(*unsteady) node) verdict {
	var history []event
	synctest.Test(t, func(t *testing.T) {
		u := &unsteady{Ledger: memory.New(memory.Config{})}
		defer u.Close()
		defer u.late.Wait()
		nodes := []node{wrap(u), wrap(u), wrap(u)}
		r := recorder{user: "user", items: items, pick: func(rng *rand.Rand) (int, node) {
			k := rng.IntN(len(nodes))
			return k, nodes[k]
		}}
		history = r.record(t.Context(), seed)
	})
	v, err := judge(history, false)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

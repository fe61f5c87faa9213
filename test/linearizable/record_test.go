package linearizable

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Sizes of one history.
const (
	clients    = 4
	operations = 50 // of each client
)

// node is what a client talks to: a ledger, or a process that has one behind it. A
// state that it tells may lack its stamp.
type node interface {
	Apply(ctx context.Context, cmd like.Command) (ledger.Ack, error)
	Liked(ctx context.Context, user like.User, items []like.Item) ([]like.State, error)
	LikedBy(ctx context.Context, user like.User, after like.Fact, n int) (ledger.Page, error)
}

// pick chooses a node for one operation.
type pick func(*rand.Rand) (number int, n node)

// event is one operation as its client saw it: a command when op is set, else a read.
// Times are those of the recorder's clock.
type event struct {
	client, node int
	op           like.Op
	items        []like.Item
	states       []like.State // in the order of items
	call, ret    int64
	answered     bool
}

// recorder records a history. Its clock ticks with every call and every answer, so
// that it orders what real time orders and no two moments are the same.
type recorder struct {
	user  like.User
	items []like.Item
	pick  pick
	// patient devices wait for every answer; else some give up very soon.
	patient bool

	clock  atomic.Int64
	mu     sync.Mutex
	events []event
}

// record lets the devices of a user like, unlike and look, until each has done its
// share, and returns what they saw in the order of their calls.
func (r *recorder) record(ctx context.Context, seed uint64) []event {
	var devices sync.WaitGroup
	for client := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(client)))
		devices.Go(func() {
			for range operations {
				r.operate(ctx, client, rng)
			}
			r.look(ctx, client, rng)
		})
	}
	devices.Wait()
	slices.SortFunc(r.events, func(a, b event) int { return cmp.Compare(a.call, b.call) })
	return r.events
}

// operate does one operation through any node.
func (r *recorder) operate(ctx context.Context, client int, rng *rand.Rand) {
	limit := 10 * time.Second
	if !r.patient && rng.IntN(20) == 0 {
		limit = time.Duration(rng.IntN(4000)) * time.Microsecond
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e := event{client: client, items: r.items}
	var err error
	switch draw := rng.IntN(10); {
	case draw < 3:
		err = r.apply(within, e, like.OpLike, rng)
	case draw < 6:
		err = r.apply(within, e, like.OpUnlike, rng)
	case draw < 9:
		err = r.liked(within, e, rng)
	default:
		err = r.list(within, e, rng)
	}
	if err != nil { // what fails now fails again at once
		rest(ctx, 10*time.Millisecond)
	}
}

// look reads until it is answered, so that a history ends with what it came to.
func (r *recorder) look(ctx context.Context, client int, rng *rand.Rand) {
	for ctx.Err() == nil && r.liked(ctx, event{client: client, items: r.items}, rng) != nil {
		rest(ctx, 10*time.Millisecond)
	}
}

func (r *recorder) apply(ctx context.Context, e event, op like.Op, rng *rand.Rand) error {
	e.op, e.items = op, []like.Item{r.items[rng.IntN(len(r.items))]}
	return r.observe(e, rng, func(n node) ([]like.State, error) {
		ack, err := n.Apply(ctx, like.Command{User: r.user, Item: e.items[0], Op: op})
		return []like.State{ack.State}, err
	})
}

func (r *recorder) liked(ctx context.Context, e event, rng *rand.Rand) error {
	return r.observe(e, rng, func(n node) ([]like.State, error) { return n.Liked(ctx, r.user, r.items) })
}

// list reads the states from the list of what the user likes (R6).
func (r *recorder) list(ctx context.Context, e event, rng *rand.Rand) error {
	return r.observe(e, rng, func(n node) ([]like.State, error) {
		page, err := n.LikedBy(ctx, r.user, like.Fact{}, len(r.items)+1)
		states := make([]like.State, len(r.items))
		for k, item := range r.items {
			for _, f := range page.Facts {
				if f.Item == item {
					states[k] = like.State{Liked: true, Since: f.Since}
				}
			}
		}
		return states, err
	})
}

// observe notes the call and the answer of one operation.
func (r *recorder) observe(e event, rng *rand.Rand, operation func(node) ([]like.State, error)) (err error) {
	number, n := r.pick(rng)
	e.node = number
	e.call = r.clock.Add(1)
	e.states, err = operation(n)
	e.ret = r.clock.Add(1)
	e.answered = err == nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	return err
}

// rest waits a little, unless ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

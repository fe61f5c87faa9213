package harness

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"syscall"
)

// Pair is one user and one item.
type Pair struct {
	User string
	Item Item
}

// Acks remembers, for every pair, which operations may still be the last one
// that took effect. An acknowledged operation rules out every other that had
// ended before it began; an unanswered one may have happened or not, and may yet
// happen while its process lives. Safe for concurrent use.
type Acks struct {
	mu      sync.Mutex
	clock   int64
	pairs   map[Pair][]*attempt
	acked   int64
	pending map[*attempt]bool // begun and not answered, also after giving up
}

type attempt struct {
	like  bool
	begin int64
	end   int64 // 0 while it may yet take effect
}

// NewAcks returns an empty ledger: nobody likes anything.
func NewAcks() *Acks {
	return &Acks{pairs: map[Pair][]*attempt{}, pending: map[*attempt]bool{}}
}

// Begin notes an operation that is about to be sent. The caller calls done with
// true when it was acknowledged, with false when it was refused without effect,
// and not at all when no answer came.
func (a *Acks) Begin(user string, item Item, like bool) (done func(acked bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clock++
	pair, op := Pair{user, item}, &attempt{like: like, begin: a.clock}
	if a.pairs[pair] == nil {
		a.pairs[pair] = []*attempt{{like: false, begin: -1, end: -1}}
	}
	a.pairs[pair] = append(a.pairs[pair], op)
	a.pending[op] = true
	return func(acked bool) { a.done(pair, op, acked) }
}

func (a *Acks) done(pair Pair, op *attempt, acked bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clock++
	op.end = a.clock
	delete(a.pending, op)
	if !acked {
		a.pairs[pair] = slices.DeleteFunc(a.pairs[pair], func(o *attempt) bool { return o == op })
		return
	}
	a.acked++
	a.pairs[pair] = slices.DeleteFunc(a.pairs[pair], func(o *attempt) bool {
		return o != op && o.end != 0 && o.end < op.begin
	})
}

// Died notes that every process of the service is gone: what had no answer until
// now cannot take effect any more. It returns how many operations that were. No
// operation may be under way.
func (a *Acks) Died() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clock++
	n := len(a.pending)
	for op := range a.pending {
		op.end = a.clock
	}
	clear(a.pending)
	return n
}

// Erased notes that an operator took back, with an acknowledgement and while
// nothing else was under way, the likes of all pairs for which match reports true.
func (a *Acks) Erased(match func(Pair) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clock++
	for p := range a.pairs {
		if match(p) {
			a.pairs[p] = []*attempt{{like: false, begin: a.clock, end: a.clock}}
		}
	}
}

// Acked returns the number of acknowledgements so far.
func (a *Acks) Acked() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.acked
}

// May reports which states of a pair the acknowledgements allow.
func (a *Acks) May(user string, item Item) (liked, unliked bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ops := a.pairs[Pair{user, item}]
	for _, op := range ops {
		liked, unliked = liked || op.like, unliked || !op.like
	}
	return liked, unliked || len(ops) == 0
}

// Pairs returns every pair that was ever begun, in a fixed order.
func (a *Acks) Pairs() []Pair {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Keys(a.pairs), func(x, y Pair) int {
		return cmp.Or(cmp.Compare(x.Item.Collection, y.Item.Collection),
			cmp.Compare(x.Item.ID, y.Item.ID), cmp.Compare(x.User, y.User))
	})
}

// Recorder likes and unlikes through a client and notes what came of it.
type Recorder struct {
	Client *Client
	Acks   *Acks
}

// Set likes an item, or takes the like back. An answer of 4xx and a refused
// connection promise that nothing happened; any other failure leaves it open.
func (r Recorder) Set(ctx context.Context, user string, item Item, like bool) (LikeState, error) {
	call := r.Client.Unlike
	if like {
		call = r.Client.Like
	}
	done := r.Acks.Begin(user, item, like)
	state, err := call(ctx, user, item)
	if err == nil || StatusOf(err)/100 == 4 || errors.Is(err, syscall.ECONNREFUSED) {
		done(err == nil)
	}
	return state, err
}

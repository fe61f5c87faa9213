package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// freeze calls while with the ledger standing still.
func (r *run) freeze(ctx context.Context, while func(context.Context) error) error {
	r.Helper()
	f, ok := r.ledger.(ledger.Freezer)
	if !ok {
		r.Fatalf("the ledger is no Freezer: name the rule in Lacks")
	}
	return f.Freeze(ctx, while)
}

// exported returns every fact.
func (r *run) exported() []like.Fact {
	r.Helper()
	var facts []like.Fact
	for f, err := range r.ledger.Export(r.Context()) {
		if err != nil {
			r.Fatalf("Export: %v", err)
		}
		facts = append(facts, f)
	}
	return sorted(facts)
}

// checkS1: from before the call of while until its return no command is applied,
// and every read shows what was acknowledged.
func checkS1(r *run) {
	r.like("drifted", post("c"))
	if r.h.Injure != nil {
		r.settle()
		r.h.Injure(r.tb, r.ledger, Injury{Fact: like.Fact{Item: post("c")}, Skew: 2})
	}
	ctx, stop := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	togglers := make([]*toggler, 8)
	for k := range togglers {
		togglers[k] = &toggler{user: userN(k), item: postN(k % 2)}
		wg.Go(func() { togglers[k].run(ctx, r.ledger) })
	}
	for range 5 {
		for _, t := range togglers {
			t.act(r)
		}
		err := r.freeze(r.Context(), func(context.Context) error {
			before := r.exported()
			for _, t := range togglers {
				if want, got := t.rest(r), r.state(t.user, t.item); got != want {
					r.Errorf("%+v was acknowledged to %q, standing still it is %+v", want, t.user, got)
				}
			}
			r.refusesToWrite()
			if diff := cmp.Diff(before, r.exported()); diff != "" {
				r.Errorf("facts changed (-before +after):\n%s", diff)
			}
			return nil
		})
		if err != nil {
			r.Errorf("Freeze: %v", err)
		}
	}
}

// toggler is a user who likes and unlikes one item without pause.
type toggler struct {
	user like.User
	item like.Item

	mu      sync.Mutex
	acked   like.State
	refused bool // a command, since rest began to wait
	done    int  // commands that were accepted, since act began to wait
}

func (t *toggler) run(ctx context.Context, l ledger.Ledger) {
	op := like.OpLike
	for ctx.Err() == nil {
		ack, err := l.Apply(ctx, like.Command{Item: t.item, User: t.user, Op: op})
		t.mu.Lock()
		if err == nil {
			t.acked = ack.State
			t.done++
			op = like.OpLike + like.OpUnlike - op
		} else {
			t.refused = true
		}
		t.mu.Unlock()
	}
}

// act waits until some commands are accepted.
func (t *toggler) act(r *run) {
	t.mu.Lock()
	t.done = 0
	t.mu.Unlock()
	acts := r.eventually(func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.done > 2
	})
	if !acts {
		r.Fatalf("commands of %q are not accepted", t.user)
	}
}

// rest waits until a command is refused, so that none is under way that was
// accepted, and returns the acknowledged state.
func (t *toggler) rest(r *run) like.State {
	r.Helper()
	t.mu.Lock()
	t.refused = false
	t.mu.Unlock()
	var acked like.State
	rests := r.eventually(func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		acked = t.acked
		return t.refused
	})
	if !rests {
		r.Fatalf("commands of %q are accepted while the ledger stands still", t.user)
	}
	return acked
}

// refusesToWrite demands that every call that changes facts or totals is refused
// at once.
func (r *run) refusesToWrite() {
	r.Helper()
	calls := []call{
		writeCalls[0], writeCalls[1],
		{"EraseUser", func(ctx context.Context, l ledger.Ledger) error {
			_, err := l.EraseUser(ctx, "drifted")
			return err
		}},
		{"RemoveItem", func(ctx context.Context, l ledger.Ledger) error {
			_, err := l.RemoveItem(ctx, post("c"))
			return err
		}},
	}
	if r.h.Injure != nil {
		calls = append(calls, call{"Audit with a repair", func(ctx context.Context, l ledger.Ledger) error {
			_, err := l.Audit(ctx, post("c"), true)
			return err
		}})
	}
	for _, c := range calls {
		ctx, cancel := context.WithTimeout(r.Context(), r.patience)
		if err := c.do(ctx, r.ledger); !errors.Is(err, like.ErrUnavailable) {
			r.Errorf("%s while the ledger stands still: %v, want ErrUnavailable", c.name, err)
		}
		cancel()
	}
}

// checkS2: reads, exports and audits go on, and feeds yield what was acknowledged
// before.
func checkS2(r *run) {
	w := r.watch()
	defer w.stop()
	r.like("u", post("1"))
	err := r.freeze(r.Context(), func(ctx context.Context) error {
		for _, c := range append(readCalls, keepCalls[0], keepCalls[1], keepCalls[4]) {
			if err := c.do(ctx, r.ledger); err != nil {
				r.Errorf("%s while the ledger stands still: %v", c.name, err)
			}
		}
		if err := r.ledger.Ready(ctx); err != nil {
			r.Errorf("Ready while the ledger stands still: %v", err)
		}
		w.shows(r, r.totalIs(post("1"), 1))
		return nil
	})
	if err != nil {
		r.Errorf("Freeze: %v", err)
	}
}

// checkS3: the ledger moves on when while returns; Close and a done context end
// while.
func checkS3(r *run) {
	if err := r.freeze(r.Context(), func(context.Context) error { return errCause }); !errors.Is(err, errCause) {
		r.Errorf("Freeze returns %v, not the error of its function", err)
	}
	r.like("u", post("1"))

	ctx, cancel := context.WithCancelCause(r.Context())
	err := r.freeze(ctx, func(frozen context.Context) error {
		cancel(errCause)
		return r.ended(frozen)
	})
	if !errors.Is(err, errCause) {
		r.Errorf("Freeze under a done context: %v, want its cause", err)
	}
	r.like("v", post("1"))
	if err := r.freeze(ctx, func(context.Context) error { return nil }); !errors.Is(err, errCause) {
		r.Errorf("Freeze with a done context: %v, want its cause", err)
	}

	var closing sync.WaitGroup
	err = r.freeze(r.Context(), func(frozen context.Context) error {
		closing.Go(func() {
			if err := r.ledger.Close(); err != nil {
				r.Errorf("Close: %v", err)
			}
		})
		return r.ended(frozen)
	})
	closing.Wait()
	if !errors.Is(err, like.ErrClosed) {
		r.Errorf("Freeze while the ledger is closed: %v, want ErrClosed", err)
	}
	if err := r.freeze(r.Context(), func(context.Context) error { return nil }); !errors.Is(err, like.ErrClosed) {
		r.Errorf("Freeze after Close: %v, want ErrClosed", err)
	}
}

// ended waits until a context is done and returns its cause.
func (r *run) ended(ctx context.Context) error {
	r.Helper()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(r.patience):
		r.Errorf("the end of the standstill is not told")
		return nil
	}
}

// checkS4: a second Freeze is like.ErrUnavailable meanwhile.
func checkS4(r *run) {
	err := r.freeze(r.Context(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, r.patience)
		defer cancel()
		return r.freeze(ctx, func(context.Context) error { return errCause })
	})
	if !errors.Is(err, like.ErrUnavailable) {
		r.Errorf("a second Freeze: %v, want ErrUnavailable", err)
	}
	if err := r.freeze(r.Context(), func(context.Context) error { return nil }); err != nil {
		r.Errorf("Freeze after another has ended: %v", err)
	}
}

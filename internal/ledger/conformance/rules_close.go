package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// call is one method of a ledger with valid arguments.
type call struct {
	name string
	do   func(context.Context, ledger.Ledger) error
}

// readCalls are the methods that R10 speaks of.
var readCalls = []call{
	{"Liked", func(ctx context.Context, l ledger.Ledger) error {
		_, err := l.Liked(ctx, "u", []like.Item{post("1")})
		return err
	}},
	{"Totals", func(ctx context.Context, l ledger.Ledger) error {
		_, err := l.Totals(ctx, []like.Item{post("1")})
		return err
	}},
	{"Likers", func(ctx context.Context, l ledger.Ledger) error {
		_, err := l.Likers(ctx, post("1"), like.Fact{}, 1)
		return err
	}},
	{"LikedBy", func(ctx context.Context, l ledger.Ledger) error {
		_, err := l.LikedBy(ctx, "u", like.Fact{}, 1)
		return err
	}},
	{"LikersAmong", func(ctx context.Context, l ledger.Ledger) error {
		_, err := l.LikersAmong(ctx, post("1"), []like.User{"u"})
		return err
	}},
}

// keepCalls are the operator's methods, except Backup, which needs a directory.
var keepCalls = []call{
	{"Audit", func(ctx context.Context, l ledger.Ledger) error {
		_, err := l.Audit(ctx, post("1"), false)
		return err
	}},
	{"AuditAll", func(ctx context.Context, l ledger.Ledger) error {
		for _, err := range l.AuditAll(ctx, false) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"EraseUser", func(ctx context.Context, l ledger.Ledger) error {
		_, err := l.EraseUser(ctx, "u")
		return err
	}},
	{"RemoveItem", func(ctx context.Context, l ledger.Ledger) error {
		_, err := l.RemoveItem(ctx, post("1"))
		return err
	}},
	{"Export", func(ctx context.Context, l ledger.Ledger) error {
		for _, err := range l.Export(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
}

// writeCalls are the methods that W9 speaks of.
var writeCalls = []call{
	{"Apply", func(ctx context.Context, l ledger.Ledger) error {
		_, err := l.Apply(ctx, like.Command{Item: post("1"), User: "u", Op: like.OpLike})
		return err
	}},
	{"ApplyMany", func(ctx context.Context, l ledger.Ledger) error {
		_, err := l.ApplyMany(ctx, []like.Command{{Item: post("1"), User: "u", Op: like.OpLike}})
		return err
	}},
}

var feedCall = call{"Feed", func(ctx context.Context, l ledger.Ledger) error {
	for _, err := range l.Feed(ctx) {
		if err != nil {
			return err
		}
	}
	return errors.New("the feed ended without an error")
}}

// checkC1: after Close every method returns like.ErrClosed; Close again returns nil.
func checkC1(r *run) {
	if err := r.ledger.Ready(r.Context()); err != nil {
		r.Errorf("Ready of an open ledger: %v", err)
	}
	r.like("u", post("1"))
	for range 2 {
		if err := r.ledger.Close(); err != nil {
			r.Errorf("Close: %v", err)
		}
	}
	dir := r.tb.TempDir() + "/backup"
	calls := slices.Concat(readCalls, keepCalls, writeCalls, []call{feedCall, {"Ready", func(ctx context.Context, l ledger.Ledger) error {
		return l.Ready(ctx)
	}}, {"Backup", func(ctx context.Context, l ledger.Ledger) error {
		return l.Backup(ctx, dir)
	}}})
	for _, c := range calls {
		if err := c.do(r.Context(), r.ledger); !errors.Is(err, like.ErrClosed) {
			r.Errorf("%s after Close: %v, want ErrClosed", c.name, err)
		}
	}
}

// checkC2: what was acknowledged before Close is there when the store is opened
// again, also when Close meets commands under way.
func checkC2(r *run) {
	r.survives(func() {
		if err := r.ledger.Close(); err != nil {
			r.Errorf("Close: %v", err)
		}
	})
}

// survives lets writers run until end stops the ledger under them, opens it again
// and compares what is there with what was acknowledged.
func (r *run) survives(end func()) {
	const writers, enough = 16, 400
	items := []like.Item{post("a"), post("b"), post("c"), {Collection: "games", ID: "a"}}
	acked := make([][]like.Fact, writers) // by writer; each user and item is written once
	tried := make([][]like.User, writers)
	ready := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	count := 0
	l := r.ledger
	for w := range writers {
		wg.Go(func() {
			for n := range 500 {
				user, item := userN(w*10_000+n), items[n%len(items)]
				tried[w] = append(tried[w], user)
				ack, err := l.Apply(r.Context(), like.Command{Item: item, User: user, Op: like.OpLike})
				if err != nil {
					return
				}
				acked[w] = append(acked[w], like.Fact{Item: item, User: user, Since: ack.State.Since})
				mu.Lock()
				if count++; count == enough {
					close(ready)
				}
				mu.Unlock()
			}
		})
	}
	<-ready
	end()
	r.reopen()
	wg.Wait()

	facts := map[like.Fact]bool{}
	for _, f := range r.agree(slices.Concat(tried...), items) {
		facts[f] = true
	}
	for _, f := range slices.Concat(acked...) {
		if !facts[f] {
			r.Fatalf("acknowledged %+v is gone", f)
		}
	}
}

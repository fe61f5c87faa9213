package demo

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

const (
	posts     = 1000      // that the crowd likes
	people    = 1_000_000 // in the crowd
	viral     = 0.4       // share of the first post; the others follow Zipf's law
	regrets   = 0.04      // share of unlikes
	breath    = 50 * time.Millisecond
	patience  = time.Second // after a batch that the ledger did not take
	beginning = 10_000      // likes that are there before anybody looks
)

// crowd likes posts at a rate that can be changed at any time. Run owns all but the
// rate.
type crowd struct {
	ledger ledger.Writer
	log    *slog.Logger
	rate   atomic.Uint64 // commands a second, as the bits of a float64

	ranks *rand.Zipf
	next  [posts]int // who of the crowd comes next to a post
}

func newCrowd(w ledger.Writer, log *slog.Logger, rate float64) *crowd {
	source := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	c := &crowd{ledger: w, log: log, ranks: rand.NewZipf(source, 1.2, 1, posts-2)}
	c.setRate(rate)
	return c
}

func (c *crowd) setRate(perSecond float64) { c.rate.Store(math.Float64bits(perSecond)) }

func (c *crowd) perSecond() float64 { return math.Float64frombits(c.rate.Load()) }

// run likes until ctx is done.
func (c *crowd) run(ctx context.Context) {
	if c.perSecond() > 0 {
		for range beginning / ledger.MaxBatch {
			c.act(ctx, ledger.MaxBatch)
		}
	}
	tick := time.NewTicker(breath)
	defer tick.Stop()
	last, owed := time.Now(), 0.0
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			// What could not be done in time is not made up for.
			owed += c.perSecond() * min(now.Sub(last), 4*breath).Seconds()
			last = now
			n := min(int(owed), ledger.MaxBatch)
			owed -= float64(n)
			c.act(ctx, n)
		}
	}
}

// act applies n commands. A ledger that does not take them is left alone for a while.
func (c *crowd) act(ctx context.Context, n int) {
	if n == 0 || ctx.Err() != nil {
		return
	}
	cmds := make([]like.Command, n)
	for i := range cmds {
		cmds[i] = c.command()
	}
	if _, err := c.ledger.ApplyMany(ctx, cmds); err != nil && ctx.Err() == nil {
		c.log.Warn("the crowd was refused", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(patience):
		}
	}
}

// command is what somebody of the crowd does next: mostly like, sometimes take back
// a like.
func (c *crowd) command() like.Command {
	rank := 0
	if rand.Float64() >= viral {
		rank = 1 + int(c.ranks.Uint64())
	}
	cmd := like.Command{Op: like.OpLike, Item: postItem(rank)}
	who := c.next[rank]
	if who > 0 && rand.Float64() < regrets {
		cmd.Op, who = like.OpUnlike, rand.IntN(who)
	} else {
		c.next[rank] = (who + 1) % people
	}
	cmd.User = like.User("crowd-" + strconv.Itoa(who))
	return cmd
}

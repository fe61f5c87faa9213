package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/ledger/pebble"
	"likewise/internal/like"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lag is the delay of totals and feeds in the ledgers that have one.
const lag = 30 * time.Millisecond

// kinds are the ledgers between which facts are moved.
var kinds = map[string]func(t testing.TB) ledger.Ledger{
	"memory":  func(testing.TB) ledger.Ledger { return memory.New(memory.Config{}) },
	"lagging": func(testing.TB) ledger.Ledger { return memory.New(memory.Config{Lag: lag, Seed: 1}) },
	"pebble": func(t testing.TB) ledger.Ledger {
		cfg := pebble.DefaultConfig()
		cfg.Dir, cfg.QueueAge = t.TempDir(), time.Minute
		l, err := pebble.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return l
	},
}

func open(t testing.TB, kind string) ledger.Ledger {
	t.Helper()
	l := kinds[kind](t)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// config moves between ledgers of this process.
func config() Config {
	cfg := DefaultConfig()
	cfg.Settle, cfg.Patience = 3*lag, 10*time.Second
	cfg.BatchSize = 50 // so that a little is many batches
	return cfg
}

// run is Run with few sums, so that many items share one.
func run(ctx context.Context, cfg Config, source, target ledger.Ledger) (Report, error) {
	m := newMover(cfg, source.(Source), target)
	m.bucketBits = 6
	return m.move(ctx)
}

// facts returns everything that a ledger holds, in one order.
func facts(t testing.TB, l Lister) []like.Fact {
	t.Helper()
	var all []like.Fact
	for f, err := range l.Export(context.WithoutCancel(t.Context())) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b like.Fact) int {
		return cmp.Or(cmp.Compare(a.Item.Collection, b.Item.Collection), cmp.Compare(a.Item.ID, b.Item.ID), cmp.Compare(a.User, b.User))
	})
	return all
}

// sameFacts demands that two ledgers hold the same facts and returns how many.
func sameFacts(t testing.TB, source, target Lister) int {
	t.Helper()
	want, got := facts(t, source), facts(t, target)
	if !slices.Equal(want, got) {
		t.Errorf("the source holds %d facts, the target %d: %s", len(want), len(got), firstDifference(want, got))
	}
	return len(want)
}

func firstDifference(want, got []like.Fact) string {
	for k := range min(len(want), len(got)) {
		if want[k] != got[k] {
			return fmt.Sprintf("%+v, not %+v", got[k], want[k])
		}
	}
	return "one is a part of the other"
}

// crowd likes and unlikes at random: a hot item and many others, now and then with
// a time of its own, and operators who erase and remove.
type crowd struct {
	ledger ledger.Ledger
	users  int
	items  int
	pause  time.Duration // between two calls
}

func (c crowd) command(r *rand.Rand) like.Command {
	item := like.Item{Collection: "posts", ID: fmt.Sprint(r.IntN(c.items))}
	if r.IntN(4) == 0 {
		item.ID = "hot"
	}
	cmd := like.Command{Item: item, User: like.User(fmt.Sprint("u", r.IntN(c.users))), Op: like.OpLike}
	switch r.IntN(6) {
	case 0, 1:
		cmd.Op = like.OpUnlike
	case 2:
		cmd.At = like.Stamp(1_700_000_000_000_000 + r.Int64N(5)) // several of one time
	}
	return cmd
}

// fill applies n commands.
func (c crowd) fill(t testing.TB, n int, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	cmds := make([]like.Command, n)
	for k := range cmds {
		cmds[k] = c.command(r)
	}
	for batch := range slices.Chunk(cmds, 500) {
		if _, err := c.ledger.ApplyMany(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

// run acts until the returned function is called. Being refused is no failure.
func (c crowd) run(t testing.TB, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range uint64(3) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, w+2))
			for ctx.Err() == nil {
				if err := c.act(ctx, r); err != nil && ctx.Err() == nil && !errors.Is(err, like.ErrUnavailable) {
					t.Errorf("the crowd is refused: %v", err)
					return
				}
				_ = rest(ctx, c.pause)
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

func (c crowd) act(ctx context.Context, r *rand.Rand) (err error) {
	cmd := c.command(r)
	switch r.IntN(200) {
	case 0:
		_, err = c.ledger.EraseUser(ctx, cmd.User)
	case 1:
		_, err = c.ledger.RemoveItem(ctx, cmd.Item)
	default:
		_, err = c.ledger.ApplyMany(ctx, []like.Command{cmd, c.command(r), c.command(r)})
	}
	return err
}

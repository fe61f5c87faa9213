package postgres

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/ledger/conformance"
	"likewise/internal/like"
	"likewise/test/harness"
)

// nodes is a ledger of several nodes over the same databases. Each command goes to
// the next node, and what is read comes from one that the last command did not go to.
type nodes struct {
	all  []*Ledger
	turn atomic.Int64
}

func (n *nodes) writer() *Ledger { return n.all[int(n.turn.Add(1))%len(n.all)] }
func (n *nodes) reader() *Ledger { return n.all[int(n.turn.Load()+1)%len(n.all)] }

func (n *nodes) Apply(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
	return n.writer().Apply(ctx, cmd)
}

func (n *nodes) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	return n.writer().ApplyMany(ctx, cmds)
}

func (n *nodes) Liked(ctx context.Context, user like.User, items []like.Item) ([]like.State, error) {
	return n.reader().Liked(ctx, user, items)
}

func (n *nodes) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	return n.reader().Totals(ctx, items)
}

func (n *nodes) Likers(ctx context.Context, item like.Item, after like.Fact, size int) (ledger.Page, error) {
	return n.reader().Likers(ctx, item, after, size)
}

func (n *nodes) LikedBy(ctx context.Context, user like.User, after like.Fact, size int) (ledger.Page, error) {
	return n.reader().LikedBy(ctx, user, after, size)
}

func (n *nodes) LikersAmong(ctx context.Context, item like.Item, users []like.User) ([]like.User, error) {
	return n.reader().LikersAmong(ctx, item, users)
}

func (n *nodes) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return n.reader().Feed(ctx)
}

func (n *nodes) Audit(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
	return n.reader().Audit(ctx, item, repair)
}

func (n *nodes) AuditAll(ctx context.Context, repair bool) iter.Seq2[ledger.Audit, error] {
	return n.reader().AuditAll(ctx, repair)
}

func (n *nodes) EraseUser(ctx context.Context, user like.User) (int64, error) {
	return n.writer().EraseUser(ctx, user)
}

func (n *nodes) RemoveItem(ctx context.Context, item like.Item) (int64, error) {
	return n.writer().RemoveItem(ctx, item)
}

func (n *nodes) Export(ctx context.Context) iter.Seq2[like.Fact, error] {
	return n.reader().Export(ctx)
}

func (n *nodes) Backup(ctx context.Context, dir string) error { return n.reader().Backup(ctx, dir) }

func (n *nodes) Freeze(ctx context.Context, while func(context.Context) error) error {
	return n.writer().Freeze(ctx, while)
}

func (n *nodes) Ready(ctx context.Context) error {
	return n.each(func(l *Ledger) error { return l.Ready(ctx) })
}
func (n *nodes) Close() error { return n.each((*Ledger).Close) }

func (n *nodes) each(do func(*Ledger) error) error {
	var errs []error
	for _, l := range n.all {
		errs = append(errs, do(l))
	}
	return errors.Join(errs...)
}

func openNodes(tb testing.TB, cfg Config, count int) *nodes {
	tb.Helper()
	n := &nodes{}
	for range count {
		n.all = append(n.all, openTest(tb, cfg))
	}
	return n
}

// harnessOf opens ledgers of count nodes with the settings that config returns.
func harnessOf(name string, count int, config func(tb testing.TB) Config) conformance.Harness {
	h := conformance.Harness{
		Name: name,
		Open: func(tb testing.TB, now func() time.Time) ledger.Ledger {
			cfg := config(tb)
			cfg.Now = now
			return openNodes(tb, cfg, count)
		},
		Reopen: func(tb testing.TB, l ledger.Ledger) ledger.Ledger {
			old := l.(*nodes)
			for _, l := range old.all {
				crash(l)
			}
			for _, url := range old.all[0].cfg.URLs {
				rests(tb, url, "state <> 'idle'") // a pooler keeps idle ones
			}
			return openNodes(tb, old.all[0].cfg, count)
		},
		Injure:  injure,
		Settle:  20 * time.Millisecond,
		Backlog: ledger.FeedBacklog + 8000, // a feed may be told of the last drain a little later
		Brief:   !harness.Heavy(),
	}
	if count > 1 {
		h.Backlog = 0 // a feed may end just before its node hears of what others drained
	}
	return h
}

// injure falsifies a total. Lists are indexes, which only the database could falsify.
func injure(tb testing.TB, l ledger.Ledger, in conformance.Injury) bool {
	if in.Skew == 0 {
		return false
	}
	item := in.Fact.Item
	execute(tb, l.(*nodes).all[0].shard(item), `INSERT INTO likewise.totals AS t VALUES ($1, $2, 0)
		ON CONFLICT (item) DO UPDATE SET count = t.count + excluded.count`, itemText(item), in.Skew)
	return true
}

// shared returns settings for ledgers of some databases, one ledger after the other.
func shared(owner testing.TB, shards int) func(testing.TB) Config {
	d := &databases{owner: owner}
	return func(tb testing.TB) Config {
		var urls []string
		for range shards {
			urls = append(urls, d.take(tb))
		}
		return hasty(urls...)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, harnessOf("postgres", 1, shared(t, 1)))
}

func TestConformanceOfTwoNodes(t *testing.T) {
	heavyTest(t)
	conformance.Run(t, harnessOf("postgres, two nodes", 2, shared(t, 1)))
}

func TestConformanceOfThreeDatabases(t *testing.T) {
	heavyTest(t)
	h := harnessOf("postgres, three databases", 1, shared(t, 3))
	h.Lacks = []conformance.Lack{{Rule: "W8", Reason: "the stamps of one batch have its order within each database only"}}
	conformance.Run(t, h)
}

func TestModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		nodes, databases int
	}{
		{"one node", 1, 1},
		{"two nodes", 2, 1},
		{"three databases", 1, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.nodes != 2 || tt.databases != 1 {
				heavyTest(t)
			}
			conformance.Model(t, harnessOf("", tt.nodes, shared(t, tt.databases)), 0)
		})
	}
}

package pebble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"likewise/internal/like"
)

// heavy chooses between the size of a drill in every run and its full one.
func heavy(usual, full int) int {
	if os.Getenv("LIKEWISE_HEAVY") == "1" {
		return full
	}
	return usual
}

// drillSeed returns the seed of a drill and prints it; LIKEWISE_SEED repeats a run.
func drillSeed(tb testing.TB) uint64 {
	tb.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("LIKEWISE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			tb.Fatalf("LIKEWISE_SEED: %v", err)
		}
	}
	tb.Logf("LIKEWISE_SEED=%d", seed)
	return seed
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

var drillStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// drillConfig has memtables so small that a few hundred commands flush and
// compact, and a clock that stands still, so that stamps can be foretold.
func drillConfig(fs vfs.FS) Config {
	cfg := DefaultConfig()
	cfg.Dir = "var/ledger"
	cfg.FS = fs
	cfg.Now = func() time.Time { return drillStart }
	cfg.CacheBytes = 64 << 10
	cfg.MemtableBytes = 8 << 10
	cfg.FilterBytes = 0
	cfg.QueueAge = time.Minute
	cfg.OnFatal = func(error) {}
	return cfg
}

// faultFS returns mem behind a hook that sees every operation before it is done,
// and may fail it.
func faultFS(mem *vfs.MemFS, hook func(op errorfs.Op) error) vfs.FS {
	return errorfs.Wrap(recycleFS{mem}, errorfs.InjectorFunc(hook))
}

// recycleFS recycles a file in two steps. The memory file system's own way locks twice,
// and hangs for good when a crash copies the disk in between.
type recycleFS struct{ *vfs.MemFS }

func (f recycleFS) ReuseForWrite(old, name string, cat vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Rename(old, name); err != nil {
		return nil, err
	}
	return f.OpenReadWrite(name, cat)
}

// eachPoint calls drill for 0 to n-1, on as many goroutines as there are processors,
// until one fails.
func eachPoint(t *testing.T, n int, drill func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < n && !t.Failed(); i = next.Add(1) - 1 {
				if err := drill(int(i)); err != nil {
					t.Errorf("point %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
}

// state is what the facts are at one point of a script.
type state struct {
	stamp like.Stamp // of the last change
	facts []like.Fact
}

// script is a series of calls, and the state after each as folded by the domain's
// own rule: states[n] is that after n calls.
type script struct {
	calls  [][]like.Command
	states []state
}

// newScript makes up n calls over a few pairs: likes, unlikes, imports with a time
// of their own, and batches in which a pair appears repeatedly.
func newScript(r *rand.Rand, n int) *script {
	s := &script{states: []state{{}}}
	clock := like.NewClock(func() time.Time { return drillStart }, 0)
	facts := map[[2]string]like.Fact{}
	for range n {
		cmds := make([]like.Command, 1)
		if r.IntN(4) == 0 {
			cmds = make([]like.Command, 1+r.IntN(12))
		}
		for i := range cmds {
			cmds[i] = randomCommand(r)
			foldModel(facts, clock, cmds[i])
		}
		s.calls = append(s.calls, cmds)
		s.states = append(s.states, state{stamp: clock.Last(), facts: slices.Collect(maps.Values(facts))})
	}
	return s
}

func randomCommand(r *rand.Rand) like.Command {
	ids := []string{"1", "a", "c2a7e9a0-0000-4000-8000-000000000001"}
	cmd := like.Command{
		Item: like.Item{Collection: "posts", ID: ids[r.IntN(len(ids))]},
		User: like.User("u" + strconv.Itoa(r.IntN(5))),
		Op:   like.OpLike,
	}
	switch r.IntN(5) {
	case 0, 1:
		cmd.Op = like.OpUnlike
	case 2:
		cmd.At = like.StampOf(drillStart) - like.Stamp(r.IntN(1000))
	}
	return cmd
}

func foldModel(facts map[[2]string]like.Fact, clock *like.Clock, cmd like.Command) {
	key := [2]string{string(cmd.User), cmd.Item.String()}
	f, liked := facts[key]
	if liked == (cmd.Op == like.OpLike) {
		return
	}
	at := clock.Next()
	if cmd.At != 0 {
		at = cmd.At
	}
	after, _ := like.Fold(like.State{Liked: liked, Since: f.Since}, cmd.Op, at)
	delete(facts, key)
	if after.Liked {
		facts[key] = like.Fact{Item: cmd.Item, User: cmd.User, Since: after.Since}
	}
}

// sortFacts returns the facts in one order, whoever listed them.
func sortFacts(facts []like.Fact) []like.Fact {
	return slices.SortedFunc(slices.Values(facts), func(a, b like.Fact) int {
		return strings.Compare(a.Item.String()+" "+string(a.User), b.Item.String()+" "+string(b.User))
	})
}

// run makes the calls in order, with up to window of them under way, until stop
// says so, and reports each acknowledged one.
func (s *script) run(l *Ledger, window int, stop func() bool, acked func(calls int)) error {
	var waiting []*request
	done := 0
	wait := func() error {
		err := <-waiting[0].done
		waiting = waiting[1:]
		if err == nil {
			done++
			acked(done)
		}
		return err
	}
	var failure error
	for _, cmds := range s.calls {
		if stop() || failure != nil {
			break
		}
		r := newRequest(cmds)
		if failure = l.queue.put(r); failure != nil {
			break
		}
		if waiting = append(waiting, r); len(waiting) >= window {
			failure = wait()
		}
	}
	for len(waiting) > 0 {
		failure = errors.Join(failure, wait())
	}
	return failure
}

// verify opens a store and compares all it shows with the script: nothing that was
// acknowledged is missing, and every view agrees with the facts at the point where
// the store ends.
func (s *script) verify(cfg Config, acked int) (err error) {
	l, err := open(cfg)
	if err != nil {
		return fmt.Errorf("reopen: %w", err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	at, err := s.position(l)
	if err != nil {
		return err
	}
	if s.states[at].stamp < s.states[acked].stamp {
		return fmt.Errorf("acknowledged likes are lost: the store ends after call %d, acknowledged was %d", at, acked)
	}
	return checkViews(l, s.states[at].facts)
}

// position returns after which call of the script a store ends.
func (s *script) position(l *Ledger) (int, error) {
	value, err := getCopy(l.db, metaSequence)
	if err != nil || value == nil {
		return 0, err
	}
	_, last, err := parseSequence(value)
	at := slices.IndexFunc(s.states, func(st state) bool { return st.stamp == last })
	if at < 0 && err == nil {
		err = fmt.Errorf("the store ends at stamp %d, in the middle of a call", last)
	}
	return at, err
}

// checkViews compares every view of a ledger with the facts it must hold.
func checkViews(l *Ledger, want []like.Fact) error {
	ctx := context.Background()
	var got []like.Fact
	for f, err := range l.Export(ctx) {
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		got = append(got, f)
	}
	if d := cmp.Diff(sortFacts(want), sortFacts(got)); d != "" {
		return fmt.Errorf("facts (-want +got):\n%s", d)
	}
	likers := map[like.Item]int64{}
	for _, f := range want {
		likers[f.Item]++
	}
	if err := checkTotals(l, likers); err != nil {
		return err
	}
	for a, err := range l.AuditAll(ctx, false) {
		if err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		if a.Drift() || a.Facts != likers[a.Item] {
			return fmt.Errorf("audit: %+v, want %d facts", a, likers[a.Item])
		}
		delete(likers, a.Item)
	}
	if len(likers) != 0 {
		return fmt.Errorf("audit: left out %v", likers)
	}
	return checkLists(l, want)
}

func checkTotals(l *Ledger, likers map[like.Item]int64) error {
	items := slices.Collect(maps.Keys(likers))
	totals, err := l.Totals(context.Background(), items)
	if err != nil {
		return fmt.Errorf("totals: %w", err)
	}
	for _, t := range totals {
		if t.Count != likers[t.Item] {
			return fmt.Errorf("total %+v, want %d", t, likers[t.Item])
		}
	}
	return nil
}

// checkLists compares the lists of every item and user, and each user's own state.
func checkLists(l *Ledger, want []like.Fact) error {
	ctx := context.Background()
	items, users := map[like.Item]int{}, map[like.User]int{}
	for _, f := range want {
		items[f.Item]++
		users[f.User]++
		states, err := l.Liked(ctx, f.User, []like.Item{f.Item, {Collection: "posts", ID: "none"}})
		if err != nil {
			return fmt.Errorf("liked: %w", err)
		}
		if states[0] != (like.State{Liked: true, Since: f.Since}) || states[1].Liked {
			return fmt.Errorf("liked %+v: %+v", f, states)
		}
	}
	for item, n := range items {
		page, err := l.Likers(ctx, item, like.Fact{}, 100)
		if err != nil || len(page.Facts) != n {
			return fmt.Errorf("likers of %v: %d of %d, %w", item, len(page.Facts), n, err)
		}
	}
	for user, n := range users {
		page, err := l.LikedBy(ctx, user, like.Fact{}, 100)
		if err != nil || len(page.Facts) != n {
			return fmt.Errorf("liked by %v: %d of %d, %w", user, len(page.Facts), n, err)
		}
	}
	return nil
}

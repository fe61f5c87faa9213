package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"likewise/test/harness"
	"likewise/test/servers"
)

// world is what one scenario plays in: a service, a client, and names that no
// other scenario or run ever used.
type world struct {
	*testing.T
	ctx    context.Context
	target *Target
	client *harness.Client
	acks   *harness.Acks
	name   string
	// small asks for few rounds, and for no judgement of speed.
	small bool
	// faulty says that the scenario injects faults for which a 5xx is right.
	faulty bool
}

func newWorld(t *testing.T, id string, target *Target) *world {
	w := &world{
		T: t, ctx: t.Context(), target: target,
		client: harness.NewClient(target.URLs, target.Admin, target.Keys),
		acks:   harness.NewAcks(),
		name:   id + "-" + strconv.FormatUint(rand.Uint64(), 36),
	}
	t.Cleanup(w.client.Close)
	return w
}

// size returns full when the scenario is played in full size, else quick.
func size[T any](w *world, quick, full T) T {
	if w.small {
		return quick
	}
	return full
}

// user returns the k-th user of the scenario, and post its k-th post.
func (w *world) user(k int) string       { return fmt.Sprintf("u%d-%s", k, w.name) }
func (w *world) post(k int) harness.Item { return harness.Post(fmt.Sprintf("p%d-%s", k, w.name)) }

func (w *world) posts(n int) []harness.Item {
	items := make([]harness.Item, n)
	for k := range items {
		items[k] = w.post(k + 1)
	}
	return items
}

// set likes or unlikes and notes the answer.
func (w *world) set(user string, item harness.Item, like bool) error {
	_, err := harness.Recorder{Client: w.client, Acks: w.acks}.Set(w.ctx, user, item, like)
	return err
}

// like and unlike want a 200.
func (w *world) like(user string, item harness.Item) {
	w.Helper()
	w.must(w.set(user, item, true))
}

func (w *world) unlike(user string, item harness.Item) {
	w.Helper()
	w.must(w.set(user, item, false))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// together runs f(1) to f(n) at one instant and wants none of them to fail.
func (w *world) together(n int, f func(k int) error) {
	w.Helper()
	var wg sync.WaitGroup
	start, errs := make(chan struct{}), make([]error, n)
	for k := range n {
		wg.Go(func() {
			<-start
			errs[k] = f(k + 1)
		})
	}
	close(start)
	wg.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) > 0 {
		w.Fatalf("%d of %d failed, the first: %v", len(errs), n, errs[0])
	}
}

// parallel runs f(1) to f(n), a few at a time, and wants none of them to fail.
func (w *world) parallel(n, workers int, f func(k int) error) {
	w.Helper()
	next := make(chan int)
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for i := range workers {
		wg.Go(func() {
			for k := range next {
				if err := f(k); err != nil && errs[i] == nil {
					errs[i] = err
				}
			}
		})
	}
	for k := range n {
		next <- k + 1
	}
	close(next)
	wg.Wait()
	w.must(errors.Join(errs...))
}

// counts reads the items in one call as a user, or as nobody.
func (w *world) counts(user string, items ...harness.Item) []harness.Count {
	w.Helper()
	counts, err := w.client.Counts(w.ctx, user, items...)
	w.must(err)
	return counts
}

// wantMine wants the user's own state of the item at once.
func (w *world) wantMine(user string, item harness.Item, liked bool) {
	w.Helper()
	if got := w.counts(user, item)[0].Mine(); got != liked {
		w.Fatalf("liked_by_me of %s on %v is %v, want %v", user, item, got, liked)
	}
}

// wantCount waits, as long as the target may take to settle, for the exact count on
// every node.
func (w *world) wantCount(item harness.Item, want int64) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, w.target.Settle)
	defer cancel()
	for k, node := range w.client.Each() {
		got := int64(-1)
		err := harness.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
			counts, err := node.Counts(w.ctx, "", item)
			if err != nil {
				return false, err
			}
			got = counts[0].Count
			return got == want, nil
		})
		if err != nil {
			w.Fatalf("count of %v is %d on node %d, want %d: %v", item, got, k+1, want, err)
		}
	}
}

// likers walks the liker list.
func (w *world) likers(item harness.Item, limit int) []string {
	w.Helper()
	likers, _, err := w.client.WalkLikers(w.ctx, item, limit)
	w.must(err)
	users := make([]string, len(likers))
	for k, l := range likers {
		users[k] = l.User
	}
	return users
}

// wantLikers wants exactly these users in the liker list, in any order.
func (w *world) wantLikers(item harness.Item, want ...string) {
	w.Helper()
	got := slices.Sorted(slices.Values(w.likers(item, 100)))
	if slices.Sort(want); !slices.Equal(got, want) {
		w.Fatalf("likers of %v are %q, want %q", item, got, want)
	}
}

// settled waits until all views agree with what was acknowledged.
func (w *world) settled() {
	w.Helper()
	_, err := w.checker().Settle(w.ctx)
	w.must(err)
}

func (w *world) checker() *harness.Checker {
	return &harness.Checker{Client: w.client, Acks: w.acks, Within: w.target.Settle, Users: 5000}
}

// restart stops all nodes gracefully and starts them again.
func (w *world) restart() {
	w.Helper()
	w.needNodes()
	w.target.Nodes.Stop()
	w.acks.Died()
	w.start()
}

// crash kills all nodes and starts them again. It returns how many requests got
// no answer.
func (w *world) crash() int {
	w.Helper()
	unanswered := w.kill()
	w.start()
	return unanswered
}

func (w *world) kill() int {
	w.Helper()
	w.needNodes()
	w.target.Nodes.Kill()
	if w.target.Database != "" {
		servers.Quiet(w.T, w.target.Database)
	}
	return w.acks.Died()
}

func (w *world) start() {
	w.Helper()
	w.client.Close()
	w.target.Nodes.StartReady(w.ctx)
}

func (w *world) needNodes() {
	w.Helper()
	if len(w.target.Nodes) == 0 {
		w.Skip("skipped: the processes of this deployment are not ours to stop")
	}
}

// needFiles is for what can only be seen in the files of a node.
func (w *world) needFiles() {
	w.Helper()
	w.needNodes()
	if w.target.Database != "" {
		w.Skip("skipped: the facts are in a database, not in a directory of the node")
	}
}

func (w *world) needAdmin() {
	w.Helper()
	if len(w.target.Admin) == 0 {
		w.Skip("skipped: the admin listener of this deployment is out of reach")
	}
}

// finish checks what holds after every scenario.
func (w *world) finish() {
	w.Helper()
	w.must(w.checker().Check(w.ctx))
	if n := w.client.Answers(5); n > 0 && !w.faulty {
		w.Fatalf("%d answers of 5xx without an injected fault", n)
	}
}

package conformance

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// spreadItems is how many items writes and pages are spread over.
const spreadItems = 100_000

// Bench measures the writes and reads that have figures to hold: likes by new users
// spread over many items and on one hot item, pages of counts with own states, and
// pages of a large item's and a large user's list. -conformance.size sets how
// large those are.
func Bench(b *testing.B, h Harness) {
	for _, submitters := range []int{64, 1024} {
		b.Run(fmt.Sprintf("like/spread/submitters=%d", submitters), func(b *testing.B) {
			benchLikes(b, h, submitters, func(z *rand.Zipf) like.Item { return postN(int(z.Uint64())) })
		})
		b.Run(fmt.Sprintf("like/hot/submitters=%d", submitters), func(b *testing.B) {
			benchLikes(b, h, submitters, func(*rand.Zipf) like.Item { return post("hot") })
		})
	}
	for _, n := range []int{20, 50} {
		b.Run(fmt.Sprintf("counts/items=%d", n), func(b *testing.B) { benchCounts(b, h, n) })
	}
	b.Run("likers/page=50", func(b *testing.B) {
		r := newBench(b, h)
		facts := r.fill(func(n int) like.Command { return like.Command{Item: post("large"), User: userN(n)} })
		benchPages(b, facts, func(after like.Fact) (ledger.Page, error) {
			return r.ledger.Likers(b.Context(), post("large"), after, 50)
		})
	})
	b.Run("likedby/page=50", func(b *testing.B) {
		r := newBench(b, h)
		facts := r.fill(func(n int) like.Command { return like.Command{Item: postN(n), User: "large"} })
		benchPages(b, facts, func(after like.Fact) (ledger.Page, error) {
			return r.ledger.LikedBy(b.Context(), "large", after, 50)
		})
	})
}

// newBench opens a ledger on the real clock.
func newBench(b *testing.B, h Harness) *run {
	return &run{T: b, tb: b, h: h, ledger: h.Open(b, time.Now)}
}

// zipf draws items as readers do: few are popular, almost all are cold.
func zipf(seed uint64) *rand.Zipf {
	return rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), 1.1, 8, spreadItems-1)
}

// benchLikes lets submitters send one like after the other, each by a new user.
func benchLikes(b *testing.B, h Harness, submitters int, item func(*rand.Zipf) like.Item) {
	r := newBench(b, h)
	var next, submitter atomic.Int64
	b.SetParallelism(max(submitters/runtime.GOMAXPROCS(0), 1))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		z := zipf(uint64(submitter.Add(1)))
		for pb.Next() {
			cmd := like.Command{Item: item(z), User: userN(int(next.Add(1))), Op: like.OpLike}
			if _, err := r.ledger.Apply(b.Context(), cmd); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "likes/s")
}

// benchCounts asks for the totals and own states of pages of n items.
func benchCounts(b *testing.B, h Harness, n int) {
	r := newBench(b, h)
	r.fill(func(k int) like.Command { return like.Command{Item: postN(k % spreadItems), User: userN(k % 100)} })
	z := zipf(1)
	items := make([]like.Item, n)
	for k := 0; b.Loop(); k++ {
		for at := range items {
			items[at] = postN(int(z.Uint64()))
		}
		if _, err := r.ledger.Totals(b.Context(), items); err != nil {
			b.Fatal(err)
		}
		if _, err := r.ledger.Liked(b.Context(), userN(k%100), items); err != nil {
			b.Fatal(err)
		}
	}
}

// benchPages reads the pages behind facts picked at random.
func benchPages(b *testing.B, facts []like.Fact, read func(after like.Fact) (ledger.Page, error)) {
	rng := rand.New(rand.NewPCG(1, 0))
	for b.Loop() {
		if _, err := read(facts[rng.IntN(len(facts))]); err != nil {
			b.Fatal(err)
		}
	}
}

// fill applies -conformance.size likes and returns their facts.
func (r *run) fill(cmd func(n int) like.Command) []like.Fact {
	r.Helper()
	cmds := make([]like.Command, max(*flagSize, 1))
	facts := make([]like.Fact, len(cmds))
	for n := range cmds {
		cmds[n] = cmd(n)
		cmds[n].Op = like.OpLike
	}
	for n, ack := range r.applyAll(cmds) {
		facts[n] = like.Fact{Item: cmds[n].Item, User: cmds[n].User, Since: ack.State.Since}
	}
	return facts
}

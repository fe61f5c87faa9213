package postgres

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"likewise/internal/like"
	"likewise/test/servers"
)

// testSeed returns the seed of a random test and prints it; LIKEWISE_SEED repeats a run.
func testSeed(tb testing.TB) uint64 {
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

type pair struct {
	user like.User
	item like.Item
}

// history is what every transaction did, and which of them the totals know.
type history struct {
	liked   map[pair]bool
	deltas  map[int64]map[pair]int64 // of each row of the outbox, by its id
	drained map[int64]bool
}

// count is what an acknowledgement has to say: what the totals know of others, and the
// caller's own state.
func (h *history) count(p pair) int64 {
	own, others := int64(0), int64(0)
	if h.liked[p] {
		own = 1
	}
	for id := range h.drained {
		for q, delta := range h.deltas[id] {
			if q.item == p.item && q.user != p.user {
				others += delta
			}
		}
	}
	return max(others+own, own)
}

// apply notes a batch, whose pairs are different ones, and what it changed.
func (h *history) apply(cmds []like.Command, id int64) {
	h.deltas[id] = map[pair]int64{}
	for _, c := range cmds {
		p := pair{c.User, c.Item}
		now := c.Op == like.OpLike
		switch {
		case now && !h.liked[p]:
			h.deltas[id][p] = 1
		case !now && h.liked[p]:
			h.deltas[id][p] = -1
		}
		h.liked[p] = now
	}
}

// moveOne moves totals by one row of the outbox, as a drain would that found the
// others locked.
const moveOne = `
	WITH taken AS (DELETE FROM likewise.outbox WHERE id = $1 RETURNING items, deltas)
	INSERT INTO likewise.totals AS t (item, count, version)
	SELECT u.item, u.delta, 1 FROM taken, unnest(taken.items, taken.deltas) AS u (item, delta)
	ON CONFLICT (item) DO UPDATE SET count = t.count + excluded.count, version = t.version + 1`

// Whatever transactions the totals know, in whatever order drains came to them, an
// acknowledgement counts its caller's own state once, and of others what the total has.
func TestCountsWhateverIsDrained(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(testSeed(t), 0))
	url := servers.Database(t)
	cfg := hasty(url)
	cfg.Drain = false
	both, direct := openNodes(t, cfg, 2), connect(t, url)
	h := &history{liked: map[pair]bool{}, deltas: map[int64]map[pair]int64{}, drained: map[int64]bool{}}
	waiting := []int64{} // rows of the outbox
	last := int64(0)
	for step := range sized(400, 5000) {
		cmds := distinct(rng, 1+rng.IntN(4))
		acks, err := both.ApplyMany(t.Context(), cmds)
		if err != nil {
			t.Fatal(err)
		}
		var id int64
		if err := direct.QueryRow(t.Context(), "SELECT coalesce(max(id), 0) FROM likewise.outbox").Scan(&id); err != nil {
			t.Fatal(err)
		}
		if id > last {
			last, waiting = id, append(waiting, id)
			h.apply(cmds, id)
		} else {
			h.apply(cmds, -1) // changed nothing
			if len(h.deltas[-1]) > 0 {
				t.Fatalf("step %d changed %v and put nothing into the outbox", step, h.deltas[-1])
			}
		}
		for k, c := range cmds {
			if want := h.count(pair{c.User, c.Item}); acks[k].Count != want {
				t.Fatalf("step %d, %v of %v by %q: count %d, want %d", step, c.Op, c.Item, c.User, acks[k].Count, want)
			}
		}
		for len(waiting) > 0 && rng.IntN(5) > 1 || len(waiting) > 20 {
			k := rng.IntN(len(waiting))
			if _, err := direct.Exec(t.Context(), moveOne, waiting[k]); err != nil {
				t.Fatal(err)
			}
			h.drained[waiting[k]] = true
			waiting = append(waiting[:k], waiting[k+1:]...)
		}
		if rng.IntN(4) == 0 {
			execute(t, both.all[0].shards[0], sweepSQL)
		}
	}
	if drifted := drift(t, both.all[0]); drifted != nil {
		t.Errorf("drift: %+v", drifted)
	}
}

// distinct returns up to n commands of a few users and items, no pair twice.
func distinct(rng *rand.Rand, n int) (cmds []like.Command) {
	seen := map[pair]bool{}
	for range n {
		c := like.Command{Item: postN(rng.IntN(3)), User: userN(rng.IntN(4)), Op: like.OpLike}
		if rng.IntN(2) == 0 {
			c.Op = like.OpUnlike
		}
		if p := (pair{c.User, c.Item}); !seen[p] {
			seen[p] = true
			cmds = append(cmds, c)
		}
	}
	return cmds
}

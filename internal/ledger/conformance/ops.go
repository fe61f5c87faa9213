package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"likewise/internal/like"
)

// kind is what one step of a random run does.
type kind string

const (
	opApply    kind = "apply"    // cmds, one by one
	opBatch    kind = "batch"    // cmds, in one call
	opLiked    kind = "liked"    // user's state of all items
	opTotals   kind = "totals"   // of all items
	opLikers   kind = "likers"   // item, in pages of n
	opLikedBy  kind = "likedby"  // user, in pages of n
	opAmong    kind = "among"    // item, all users
	opErase    kind = "erase"    // user
	opRemove   kind = "remove"   // item
	opAudit    kind = "audit"    // item
	opAuditAll kind = "auditall" // everything
	opExport   kind = "export"   // everything
	opClock    kind = "clock"    // step the clock by n milliseconds
	opReopen   kind = "reopen"   // end the ledger hard and open it again
	opSkew     kind = "skew"     // falsify item's total by n, audit, repair
	opUnlist   kind = "unlist"   // drop user from item's list, audit, repair
	opPhantom  kind = "phantom"  // list user under item without a fact, audit, repair
	opSettle   kind = "settle"   // wait for totals and the feed, compare them
)

// op is one step. It does not depend on what came before, so that any step can be
// left out.
type op struct {
	kind kind
	cmds []like.Command
	item like.Item
	user like.User
	n    int
}

func (o op) String() string {
	if o.cmds == nil {
		return fmt.Sprintf("%s item=%q user=%q n=%d", o.kind, o.item, o.user, o.n)
	}
	parts := make([]string, len(o.cmds))
	for k, c := range o.cmds {
		parts[k] = fmt.Sprintf("%v %q by %q at %d", c.Op, c.Item, c.User, c.At)
	}
	return string(o.kind) + " " + strings.Join(parts, ", ")
}

// format prints a list of steps, one per line.
func format(ops []op) string {
	var b strings.Builder
	for k, o := range ops {
		fmt.Fprintf(&b, "%4d %v\n", k, o)
	}
	return b.String()
}

// modelUsers and modelItems are few, so that everything meets, and alike, so that
// keys that are not exact meet too.
var (
	modelUsers = []like.User{"1", "01", "a", "A", "a:b", "18446744073709551615", "ü", "0189f7ea-ae2c-7b5c-8d1e-0a1b2c3d4e5f"}
	modelItems = []like.Item{post("1"), post("01"), post("b:c"), post("c"), post("C"), {Collection: "p", ID: "osts/1"}, {Collection: "games", ID: "1"}}
)

// weights say how often each kind is drawn.
var weights = []struct {
	kind   kind
	weight int
}{
	{opApply, 40},
	{opBatch, 10},
	{opLiked, 8},
	{opTotals, 8},
	{opLikers, 10},
	{opLikedBy, 8},
	{opAmong, 4},
	{opErase, 2},
	{opRemove, 2},
	{opAudit, 4},
	{opAuditAll, 1},
	{opExport, 1},
	{opClock, 4},
	{opReopen, 1},
	{opSkew, 2},
	{opUnlist, 2},
	{opPhantom, 2},
	{opSettle, 1},
}

// generate returns n steps that depend on seed only.
func generate(seed uint64, n int) []op {
	rng := rand.New(rand.NewPCG(seed, 0))
	sum := 0
	for _, w := range weights {
		sum += w.weight
	}
	ops := make([]op, n)
	for k := range ops {
		draw, at := rng.IntN(sum), 0
		for draw >= weights[at].weight {
			draw -= weights[at].weight
			at++
		}
		ops[k] = generateOne(rng, weights[at].kind)
	}
	return ops
}

func generateOne(rng *rand.Rand, kd kind) op {
	o := op{
		kind: kd,
		item: modelItems[rng.IntN(len(modelItems))],
		user: modelUsers[rng.IntN(len(modelUsers))],
		n:    1 + rng.IntN(5),
	}
	switch kd {
	case opApply:
		o.cmds = commands(rng, 1)
	case opBatch:
		o.cmds = commands(rng, 1+rng.IntN(12))
		if rng.IntN(3) == 0 { // and one pair several times
			o.cmds = append(o.cmds, o.cmds...)
		}
	case opClock:
		o.n = rng.IntN(2*int(time.Hour/time.Millisecond)) - int(time.Hour/time.Millisecond)
	case opSkew:
		o.n = rng.IntN(20) - 10
	}
	return o
}

func commands(rng *rand.Rand, n int) []like.Command {
	cmds := make([]like.Command, n)
	for k := range cmds {
		cmds[k] = like.Command{
			Item: modelItems[rng.IntN(len(modelItems))],
			User: modelUsers[rng.IntN(len(modelUsers))],
			Op:   like.OpLike,
		}
		switch rng.IntN(5) {
		case 0, 1:
			cmds[k].Op = like.OpUnlike
		case 2:
			cmds[k].At = like.Stamp(1 + rng.IntN(4)) // imports share stamps
		}
	}
	return cmds
}

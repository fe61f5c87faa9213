package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"likewise/internal/like"
)

// Everything meets where there are few of each.
const (
	someUsers = 5
	someItems = 4
)

// command is one of a step, with its user and item by number.
type command struct {
	user, item int
	op         like.Op
	at         like.Stamp // original time of some likes
}

// deed is what a step does.
type deed string

const (
	send   deed = "send" // the commands
	erase  deed = "erase a user"
	remove deed = "remove an item"
)

// look is what is read behind a step.
type look string

const (
	states  look = "states of a user"
	likedBy look = "list of a user"
	likers  look = "list of an item"
	among   look = "likers among all"
)

// step does not depend on the steps before it, so that any can be left out.
type step struct {
	deed       deed
	cmds       []command
	look       look
	user, item int // of an erasure or a removal, and of the look
	page       int // size
}

func (s step) String() string {
	text := fmt.Sprintf("%s (user %d, item %d)", s.deed, s.user, s.item)
	if s.deed == send {
		var parts []string
		for _, c := range s.cmds {
			parts = append(parts, fmt.Sprintf("u%d %v i%d at %d", c.user, c.op, c.item, c.at))
		}
		text = "send " + strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s; read %s in pages of %d", text, s.look, s.page)
}

// generate returns a sequence of n steps.
func generate(rng *rand.Rand, n int) []step {
	steps := make([]step, n)
	for k := range steps {
		s := step{
			deed: send, user: rng.IntN(someUsers), item: rng.IntN(someItems), page: 1 + rng.IntN(4),
			look: []look{states, likedBy, likers, among}[rng.IntN(4)],
		}
		switch rng.IntN(25) {
		case 0:
			s.deed = erase
		case 1:
			s.deed = remove
		default:
			s.cmds = commands(rng)
		}
		steps[k] = s
	}
	return steps
}

func commands(rng *rand.Rand) []command {
	cmds := make([]command, 1+rng.IntN(8))
	for k := range cmds {
		cmds[k] = command{user: rng.IntN(someUsers), item: rng.IntN(someItems), op: like.OpLike}
		switch rng.IntN(6) {
		case 0, 1:
			cmds[k].op = like.OpUnlike
		case 2:
			cmds[k].at = like.Stamp(1 + rng.IntN(3)) // imports share times
		}
	}
	if rng.IntN(5) == 0 {
		cmds = append(cmds, cmds...)
	}
	return cmds
}

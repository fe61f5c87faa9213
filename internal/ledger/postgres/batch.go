package postgres

import (
	"cmp"
	"slices"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// command is one command of a batch, with where its acknowledgement goes.
type command struct {
	like.Command
	key   string // the text of the item
	place int    // in the order of acceptance
	call  *call
	ack   *ledger.Ack
}

// run is all commands of one pair in a batch, in the order of acceptance. What they
// do to the fact, whatever it was, is at most an unlike followed by a like: all up to
// the last unlike leave it unliked, and of the likes behind that only the first can
// set the stamp.
type run struct {
	commands []command
	done     int // commands that are applied
}

// next returns the operation that applies the next commands, and how many it covers.
func (r *run) next() (op *command, covers int) {
	rest := r.commands[r.done:]
	for k, c := range slices.Backward(rest) {
		if c.Op == like.OpUnlike {
			return &rest[k], k + 1
		}
	}
	return &rest[0], len(rest)
}

// at returns the stamp that a like would set, when the first place has the stamp base.
func (c *command) at(base like.Stamp) like.Stamp {
	if c.At != 0 {
		return c.At
	}
	return base + like.Stamp(c.place)
}

// runsOf groups the commands of calls by pair. Runs are in the order of the primary
// key, in which every transaction touches rows.
func runsOf(calls []*call) []*run {
	n := 0
	for _, c := range calls {
		n += len(c.cmds)
	}
	all := make([]command, 0, n)
	for _, c := range calls {
		for k, cmd := range c.cmds {
			all = append(all, command{Command: cmd, key: itemText(cmd.Item), place: len(all), call: c, ack: &c.acks[k]})
		}
	}
	slices.SortFunc(all, func(a, b command) int {
		if order := comparePairs(a, b); order != 0 {
			return order
		}
		return a.place - b.place
	})
	var runs []*run
	for at := 0; at < len(all); {
		end := at + 1
		for end < len(all) && comparePairs(all[at], all[end]) == 0 {
			end++
		}
		runs = append(runs, &run{commands: all[at:end:end]})
		at = end
	}
	return runs
}

func comparePairs(a, b command) int {
	if order := cmp.Compare(a.User, b.User); order != 0 {
		return order
	}
	return cmp.Compare(a.key, b.key)
}

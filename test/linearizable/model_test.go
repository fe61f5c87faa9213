package linearizable

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"likewise/internal/like"
)

// kind is what an operation on a register does.
type kind uint8

const (
	command kind = iota // its answer is the state right after it
	read
	chance // a command without an answer
	end    // after everything that was answered
)

// input is one operation on a register.
type input struct {
	kind   kind
	op     like.Op // of a command or a chance
	number int     // of a chance among those with its op, in the order of their calls
	// ahead says, for each op, whether a read may show a command with it that is under
	// way, before it takes effect for others.
	ahead [3]bool
}

// seen is what an answer said of a register. since numbers the stamps that were seen
// of it, from 1; 0 means that the answer named none.
type seen struct {
	liked bool
	since int
}

// register is the state of one pair.
type register struct {
	liked bool
	since int    // 0 until an answer names it
	past  uint64 // the stamps that it has had: bit n is number n
	taken [3]int // chances, by their op
	ended bool
}

// maxStamps is how many stamps of one pair fit register.past.
const maxStamps = 63

var model = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, in, out any) (bool, any) {
		ok, next := state.(register).step(in.(input), out.(seen))
		return ok, next
	},
	DescribeOperation: func(in, out any) string { return describe(in.(input), out.(seen)) },
	DescribeState:     func(state any) string { return seen{state.(register).liked, state.(register).since}.String() },
}

func (r register) step(in input, out seen) (bool, register) {
	switch in.kind {
	case command:
		return r.after(in.op).shows(out)
	case chance:
		return r.take(in)
	case end:
		r.ended = true
		return true, r
	}
	ok, next := r.shows(out)
	if !ok && in.ahead[opTo(out.liked)] {
		return true, r
	}
	return ok, next
}

// opTo is the op that leads to a state.
func opTo(liked bool) like.Op {
	if liked {
		return like.OpLike
	}
	return like.OpUnlike
}

func (r register) after(op like.Op) register {
	if liked := op == like.OpLike; liked != r.liked {
		r.liked, r.since = liked, 0
	}
	return r
}

// take lets a command without an answer take effect. One that had none, or never came,
// is as good as one after the end. Of those with one op the effect is the same, so that
// it is enough to try the one that was called first.
func (r register) take(in input) (bool, register) {
	if r.ended {
		return true, r
	}
	if r.liked == (in.op == like.OpLike) || r.taken[in.op] != in.number {
		return false, r
	}
	r.taken[in.op]++
	return true, r.after(in.op)
}

// shows reports whether an answer is right. The first one after a like names the stamp,
// which stays until the unlike, and never returns.
func (r register) shows(out seen) (bool, register) {
	switch {
	case out.liked != r.liked:
		return false, r
	case out.since == 0 || out.since == r.since:
		return true, r
	case r.since != 0 || r.past&(1<<out.since) != 0:
		return false, r
	}
	r.since = out.since
	r.past |= 1 << out.since
	return true, r
}

func (s seen) String() string {
	if !s.liked {
		return "not liked"
	}
	return fmt.Sprintf("liked(%d)", s.since)
}

func describe(in input, out seen) string {
	switch in.kind {
	case command:
		return fmt.Sprint(in.op, ": ", out)
	case chance:
		return fmt.Sprint(in.op, " without an answer")
	case end:
		return "end"
	}
	return fmt.Sprint("read: ", out)
}

// never is when an operation without an answer ends.
const never = 1 << 62

// registers splits a history, in the order of its calls, into one for each item. Reads
// may be ahead where they may come from replicas.
func registers(history []event, ahead bool) (map[like.Item][]porcupine.Operation, error) {
	parts := map[like.Item][]porcupine.Operation{}
	stamps := map[like.Item]map[like.Stamp]int{}
	chances := map[like.Item]*[3]int{}
	for _, item := range items {
		stamps[item], chances[item] = map[like.Stamp]int{}, &[3]int{}
		parts[item] = []porcupine.Operation{{Input: input{kind: end}, Output: seen{}, Call: never - 1, Return: never}}
	}
	for _, e := range history {
		for k, item := range e.items {
			add := func(in input, out seen, ret int64) {
				parts[item] = append(parts[item], porcupine.Operation{ClientId: e.client, Input: in, Output: out, Call: e.call, Return: ret, Metadata: e.node})
			}
			switch {
			case e.op != 0 && !e.answered:
				add(input{kind: chance, op: e.op, number: chances[item][e.op]}, seen{}, never)
				chances[item][e.op]++
			case e.op != 0:
				add(input{kind: command, op: e.op}, see(stamps[item], e.states[k]), e.ret)
			case e.answered:
				in := input{kind: read}
				if ahead {
					in.ahead = underWay(history, item, e)
				}
				add(in, see(stamps[item], e.states[k]), e.ret)
			}
		}
	}
	for item, known := range stamps {
		if len(known) > maxStamps {
			return nil, fmt.Errorf("%v had %d stamps, the check can tell %d apart; make histories shorter", item, len(known), maxStamps)
		}
	}
	return parts, nil
}

// underWay tells of which ops a command overlapped a read.
func underWay(history []event, item like.Item, read event) (ops [3]bool) {
	for _, e := range history {
		if e.op != 0 && e.items[0] == item && e.call < read.ret && (e.ret > read.call || !e.answered) {
			ops[e.op] = true
		}
	}
	return ops
}

// see numbers the stamp of a state.
func see(numbers map[like.Stamp]int, s like.State) seen {
	if !s.Liked || s.Since == 0 {
		return seen{liked: s.Liked}
	}
	if numbers[s.Since] == 0 {
		numbers[s.Since] = len(numbers) + 1
	}
	return seen{true, numbers[s.Since]}
}

// verdict is what a check of one history found.
type verdict struct {
	result porcupine.CheckResult
	item   like.Item // whose register is wrong or too hard to check
	parts  []porcupine.Operation
}

// judge checks every register of a history.
func judge(history []event, ahead bool) (verdict, error) {
	byItem, err := registers(history, ahead)
	if err != nil {
		return verdict{}, err
	}
	for item, parts := range byItem {
		if result := porcupine.CheckOperationsTimeout(model, parts, patience); result != porcupine.Ok {
			return verdict{result, item, parts}, nil
		}
	}
	return verdict{result: porcupine.Ok}, nil
}

// patience is how long the check of one register may take; most take a millisecond.
const patience = 30 * time.Second

// draw writes a picture of a wrong register to a file.
func (v verdict) draw(path string) error {
	_, info := porcupine.CheckOperationsVerbose(model, v.parts, patience)
	return porcupine.VisualizePath(model, info, path)
}

// String lists the operations of a wrong register in the order of their calls.
func (v verdict) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%v is %v:\n", v.item, v.result)
	slices.SortStableFunc(v.parts, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, o := range v.parts {
		until := fmt.Sprint(o.Return)
		if o.Return == never {
			until = ""
		}
		fmt.Fprintf(&text, "%6d to %6s  client %d  node %v  %s\n", o.Call, until, o.ClientId, o.Metadata, describe(o.Input.(input), o.Output.(seen)))
	}
	return text.String()
}

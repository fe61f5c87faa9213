package metamorphic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"likewise/internal/counts"
	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/test/harness"
)

// node is one node of a variant.
type node struct {
	ledger.Ledger
	counts *counts.Counts // nil without a cache
}

// delivery is how a variant sends the commands of a step. Those of one pair are
// always accepted in their order.
type delivery int

const (
	oneByOne delivery = iota
	inBatches
	atOnce // pairs apart
)

// variant is one way to keep likes.
type variant struct {
	nodes  []node
	sends  delivery
	settle time.Duration // after which totals and caches have to show everything
}

// run is one sequence on its way through the nodes of a variant. Its users and items
// have a name of their own, so that any number of runs may be under way.
type run struct {
	name string
	variant

	calls  int
	told   map[like.Stamp]int // the step that a stamp was given in
	script []string
}

// imports are the times of commands that bring their own.
const imports = 1000

// transcribe sends a sequence through nodes, and returns what was seen.
func transcribe(ctx context.Context, name string, v variant, steps []step) (script []string, err error) {
	r := &run{name: name, variant: v, told: map[like.Stamp]int{}}
	for k, s := range steps {
		if err := r.do(ctx, k, s); err != nil {
			return r.script, fmt.Errorf("step %d: %w", k, err)
		}
		if err := r.read(ctx, s.look, s.user, s.item, s.page); err != nil {
			return r.script, fmt.Errorf("read behind step %d: %w", k, err)
		}
	}
	err = r.end(ctx)
	return r.script, err
}

func (r *run) write(format string, args ...any) {
	r.script = append(r.script, fmt.Sprintf(format, args...))
}

// next is the node that the next call goes to.
func (r *run) next() node {
	r.calls++
	return r.nodes[r.calls%len(r.nodes)]
}

func (r *run) user(k int) like.User { return like.User(fmt.Sprintf("%s-u%d", r.name, k)) }

func (r *run) item(k int) like.Item {
	return like.Item{Collection: []string{"posts", "games"}[k%2], ID: fmt.Sprintf("%s-i%d", r.name, k)}
}

func (r *run) users() (all []like.User) {
	for k := range someUsers {
		all = append(all, r.user(k))
	}
	return all
}

func (r *run) items() (all []like.Item) {
	for k := range someItems {
		all = append(all, r.item(k))
	}
	return all
}

// do carries out one step and writes down what it answered.
func (r *run) do(ctx context.Context, number int, s step) error {
	switch s.deed {
	case erase:
		n, err := r.next().EraseUser(ctx, r.user(s.user))
		r.write("step %d: %d removed", number, n)
		return err
	case remove:
		n, err := r.next().RemoveItem(ctx, r.item(s.item))
		r.write("step %d: %d removed", number, n)
		return err
	}
	acks, err := r.send(ctx, s.cmds)
	if err != nil {
		return err
	}
	type pair struct{ user, item int }
	last := map[pair]ledger.Ack{}
	for k, c := range s.cmds {
		last[pair{c.user, c.item}] = acks[k]
	}
	var lines []string
	for p, ack := range last {
		if _, old := r.told[ack.State.Since]; !old && ack.State.Since > imports {
			r.told[ack.State.Since] = number
		}
		lines = append(lines, fmt.Sprintf("step %d: u%d i%d %s", number, p.user, p.item, r.state(ack.State)))
	}
	slices.Sort(lines)
	r.script = append(r.script, lines...)
	return nil
}

// send sends commands in the way of the variant.
func (r *run) send(ctx context.Context, cmds []command) ([]ledger.Ack, error) {
	all := make([]like.Command, len(cmds))
	for k, c := range cmds {
		all[k] = like.Command{User: r.user(c.user), Item: r.item(c.item), Op: c.op, At: c.at}
	}
	if r.sends == inBatches {
		n := r.next()
		acks, err := n.ApplyMany(ctx, all)
		for k := range acks {
			n.observe(all[k].Item, acks[k])
		}
		return acks, err
	}
	acks, errs := make([]ledger.Ack, len(all)), make([]error, len(all))
	var under sync.WaitGroup
	for k, cmd := range all {
		again := slices.ContainsFunc(all[:k], func(c like.Command) bool { return c.User == cmd.User && c.Item == cmd.Item })
		if again || r.sends == oneByOne {
			under.Wait()
		}
		n := r.next()
		under.Go(func() {
			acks[k], errs[k] = n.Apply(ctx, cmd)
			n.observe(cmd.Item, acks[k])
		})
	}
	under.Wait()
	return acks, errors.Join(errs...)
}

// observe tells the cache what an acknowledgement shows, as a node does.
func (n node) observe(item like.Item, ack ledger.Ack) {
	if n.counts != nil {
		n.counts.Observe(like.Total{Item: item, Count: ack.Count, Version: ack.Version})
	}
}

// state names a state by the step of its stamp.
func (r *run) state(s like.State) string {
	if !s.Liked {
		return "not liked"
	}
	return "liked " + r.when(s.Since)
}

func (r *run) when(s like.Stamp) string {
	if s <= imports {
		return fmt.Sprint("at ", int64(s))
	}
	if k, ok := r.told[s]; ok {
		return fmt.Sprint("in step ", k)
	}
	return "at a time that no acknowledgement told"
}

// read reads one thing and writes it down.
func (r *run) read(ctx context.Context, what look, user, item, page int) error {
	switch what {
	case states:
		got, err := r.next().Liked(ctx, r.user(user), r.items())
		for k, s := range got {
			r.write("u%d i%d is %s", user, k, r.state(s))
		}
		return err
	case likedBy:
		return r.walk(fmt.Sprint("liked by u", user), page, func(after like.Fact) (ledger.Page, error) {
			return r.next().LikedBy(ctx, r.user(user), after, page)
		})
	case likers:
		return r.walk(fmt.Sprint("likers of i", item), page, func(after like.Fact) (ledger.Page, error) {
			return r.next().Likers(ctx, r.item(item), after, page)
		})
	default:
		got, err := r.next().LikersAmong(ctx, r.item(item), r.users())
		r.write("of all, %v like i%d", r.local(got), item)
		return err
	}
}

// local takes the name of the run out of names.
func (r *run) local(names any) string { return strings.ReplaceAll(fmt.Sprint(names), r.name+"-", "") }

// walk reads a list to its end. Facts of one time are in the ledger's order.
func (r *run) walk(name string, n int, read func(after like.Fact) (ledger.Page, error)) error {
	line, last := name+":", ""
	var group []string
	flush := func() {
		if slices.Sort(group); len(group) > 0 {
			line += fmt.Sprintf(" %s %v", last, group)
		}
		group = nil
	}
	var after like.Fact
	for more := true; more; {
		page, err := read(after)
		if err != nil {
			return err
		}
		if more = page.More; len(page.Facts) > n || more && len(page.Facts) < n {
			line += fmt.Sprintf(" (a page of %d)", len(page.Facts))
		}
		for _, f := range page.Facts {
			if when := r.when(f.Since); when != last {
				flush()
				last = when
			}
			group = append(group, r.local(fmt.Sprintf("%s %s", f.Item, f.User)))
			after = f
		}
	}
	flush()
	r.write("%s", line)
	return nil
}

// end writes down all views at rest.
func (r *run) end(ctx context.Context) error {
	facts := map[like.Item]int64{}
	for u := range someUsers {
		got, err := r.next().Liked(ctx, r.user(u), r.items())
		if err != nil {
			return err
		}
		for k, s := range got {
			if s.Liked {
				facts[r.item(k)]++
			}
		}
		if err := cmp.Or(r.read(ctx, states, u, 0, 0), r.read(ctx, likedBy, u, 0, 3)); err != nil {
			return err
		}
	}
	for k := range someItems {
		if err := cmp.Or(r.read(ctx, likers, 0, k, 2), r.read(ctx, among, 0, k, 0)); err != nil {
			return err
		}
		a, err := r.next().Audit(ctx, r.item(k), false)
		if err != nil {
			return err
		}
		r.write("audit of i%d: %d facts, drift %v", k, a.Facts, a.Drift())
	}
	for k, n := range r.nodes {
		totals, err := r.count(ctx, n, facts)
		if err != nil {
			return err
		}
		if k == 0 || !slices.Equal(totals, r.script[len(r.script)-someItems:]) {
			r.script = append(r.script, totals...)
		}
	}
	return nil
}

// count tells what a node counts, when it is what it has to be or much time has passed.
func (r *run) count(ctx context.Context, n node, facts map[like.Item]int64) (script []string, err error) {
	waiting, cancel := context.WithTimeout(ctx, r.settle)
	defer cancel()
	var totals []like.Total
	var shown []counts.Entry
	err = harness.Poll(waiting, 5*time.Millisecond, func() (right bool, err error) {
		if totals, err = n.Totals(ctx, r.items()); err != nil {
			return false, err
		}
		right = !slices.ContainsFunc(totals, func(t like.Total) bool { return t.Count != facts[t.Item] })
		if n.counts == nil {
			return right, nil
		}
		shown, err = n.counts.Page(ctx, r.user(0), r.items())
		return right && !slices.ContainsFunc(shown, func(e counts.Entry) bool { return e.Total.Count != facts[e.Total.Item] }), err
	})
	if err != nil && waiting.Err() == nil {
		return nil, err
	}
	for k, t := range totals {
		line := fmt.Sprintf("total of i%d: %d", k, t.Count)
		if shown != nil && shown[k].Total.Count != t.Count {
			line += fmt.Sprintf(", in the cache %d", shown[k].Total.Count)
		}
		script = append(script, line)
	}
	return script, nil
}

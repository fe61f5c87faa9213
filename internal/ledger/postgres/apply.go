package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

//go:embed sql/apply.sql
var applyFastSQL string

// applySQL is for a batch that met facts newer than its snapshot: it looks for them
// in front of each fact, passes them over, and says which ones it added itself.
var applySQL = strings.Replace(applyFastSQL, "RETURNING user_id, item\n", "ON CONFLICT DO NOTHING RETURNING user_id, item\n", 1) + `
	UNION ALL
	SELECT 'added', pair.ord, 0, 0 FROM pair JOIN added USING (user_id, item)`

// Every transaction that changes facts ends by itself when its node vanishes in the
// middle, is never acknowledged because the server has lost its patience with a
// replica (statement_timeout and client_min_messages are for the COMMIT), never scans a
// table, whatever the planner knew of it when it was empty, and says whether the ledger
// may be written to. apply.sql has one good plan: to plan it for every batch anew takes
// ten times as long as to run it for a command. Where a scan cannot be avoided it seems
// so expensive that the planner would also compile it.
const beginSQL = `SELECT pg_try_advisory_xact_lock_shared($1)
	FROM set_config('idle_in_transaction_session_timeout', '10s', true) a, set_config('enable_seqscan', 'off', true) b,
		set_config('plan_cache_mode', 'force_generic_plan', true) c, set_config('jit', 'off', true) d,
		set_config('statement_timeout', '0', true) e, set_config('client_min_messages', 'warning', true) f`

// step is one operation for each of some pairs: what one transaction applies.
type step struct {
	runs   []*run
	ops    []*command // of each run
	covers []int      // commands of each run that its operation covers
	items  []string   // distinct, in order
	places int64      // in the order of acceptance
}

func newStep(runs []*run, places int) *step {
	s := &step{runs: runs, places: int64(places)}
	for _, r := range runs {
		op, covers := r.next()
		s.ops, s.covers = append(s.ops, op), append(s.covers, covers)
		s.items = append(s.items, op.key)
	}
	slices.Sort(s.items)
	s.items = slices.Compact(s.items)
	return s
}

// args are the arguments of apply.sql.
func (s *step) args(floor like.Stamp, now *int64) []any {
	n := len(s.ops)
	users, items := make([]string, n), make([]string, n)
	likes, times, places := make([]bool, n), make([]int64, n), make([]int64, n)
	for k, op := range s.ops {
		users[k], items[k] = string(op.User), op.key
		likes[k], times[k], places[k] = op.Op == like.OpLike, int64(op.At), int64(op.place)
	}
	return []any{users, items, likes, times, places, s.places, int64(floor), now, s.items}
}

// outcome is what apply.sql answered.
type outcome struct {
	base    like.Stamp            // stamps are this plus the place
	seen    []like.State          // of each pair, in the snapshot
	pending []int64               // by which the totals of the snapshot have still to move for each pair
	totals  map[string]like.Total // by the text of the item
	own     []bool                // of each pair: whether it added the fact; of applySQL only
	added   int64
	removed int64
	tx      transaction // zero when nothing changed
	waits   bool        // nothing changed, and yet the COMMIT waits for a replica
}

// read fills an outcome from the rows of apply.sql.
func (s *step) read(rows pgx.Rows) (*outcome, error) {
	o := &outcome{
		seen: make([]like.State, len(s.ops)), pending: make([]int64, len(s.ops)), own: make([]bool, len(s.ops)),
		totals: make(map[string]like.Total, len(s.items)),
	}
	var kind string
	var n, a, b int64
	answered := false
	_, err := pgx.ForEachRow(rows, []any{&kind, &n, &a, &b}, func() error {
		switch kind {
		case "pair":
			if a >= 0 {
				o.seen[n-1] = like.State{Liked: true, Since: like.Stamp(a)}
			}
			o.pending[n-1] = b
		case "total":
			o.totals[s.items[n-1]] = like.Total{Count: a, Version: uint64(b)}
		case "added":
			o.own[n-1] = true
		case "batch":
			o.added, o.removed, o.base, answered = n, a, like.Stamp(b), true
		case "xact":
			o.tx = transaction{id: uint64(n), era: a}
		case "waits":
			o.waits = true
		}
		return nil
	})
	if err == nil && !answered {
		err = errors.New("the batch was not answered")
	}
	return o, err
}

// unseen counts the likes of pairs that the snapshot had no fact of. When fewer facts
// were added, other transactions added the rest after the snapshot.
func (s *step) unseen(o *outcome) (n int64) {
	for k := range s.ops {
		if s.likes(k, o) {
			n++
		}
	}
	return n
}

// likes reports whether an operation is the like of a pair without a fact.
func (s *step) likes(k int, o *outcome) bool { return s.ops[k].Op == like.OpLike && !o.seen[k].Liked }

// settle acknowledges what the operations cover, each command with the state right
// after it. met is nil, or has what was read later of pairs whose facts others added:
// a like repeats that fact, or is left for the next step when that is gone again.
func (s *step) settle(o *outcome, met []like.State) {
	for k, r := range s.runs {
		op, state := s.ops[k], o.seen[k]
		repeats := met != nil && s.likes(k, o) && !o.own[k]
		if repeats {
			if state = met[k]; !state.Liked {
				continue
			}
		}
		if !repeats && state.Liked != (op.Op == like.OpLike) {
			op.call.changes++
		}
		for range s.covers[k] {
			c := r.commands[r.done]
			state, _ = like.Fold(state, c.Op, c.at(o.base))
			*c.ack = acknowledge(state, o.seen[k], o.pending[k], o.totals[op.key])
			r.done++
		}
	}
}

// acknowledge counts the caller's own state exactly once: what the total of the
// snapshot holds of it is taken out, which is the fact of the snapshot less what the
// total has still to move by, and the state now is put in.
func acknowledge(state, seen like.State, pending int64, total like.Total) ledger.Ack {
	own := one(state) - one(seen) + pending
	count := max(total.Count+own, one(state))
	ack := ledger.Ack{State: state, Count: count}
	if own == 0 && count == total.Count {
		ack.Version = total.Version
	}
	return ack
}

func one(s like.State) int64 {
	if s.Liked {
		return 1
	}
	return 0
}

//go:embed sql/states.sql
var statesSQL string

// readStates reads the facts of some pairs as they are now.
func (s *shard) readStates(ctx context.Context, ops []*command) ([]like.State, error) {
	users, items := make([]string, len(ops)), make([]string, len(ops))
	for k, op := range ops {
		users[k], items[k] = string(op.User), op.key
	}
	rows, err := s.write.Query(ctx, statesSQL, users, items)
	if err != nil {
		return nil, err
	}
	return collectStates(rows, len(ops))
}

func collectStates(rows pgx.Rows, n int) ([]like.State, error) {
	states := make([]like.State, 0, n)
	var since int64
	_, err := pgx.ForEachRow(rows, []any{&since}, func() error {
		var state like.State
		if since >= 0 {
			state = like.State{Liked: true, Since: like.Stamp(since)}
		}
		states = append(states, state)
		return nil
	})
	if err == nil && len(states) != n {
		err = fmt.Errorf("%d states of %d pairs", len(states), n)
	}
	return states, err
}

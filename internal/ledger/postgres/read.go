package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"math"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

//go:embed sql/liked.sql
var likedSQL string

//go:embed sql/totals.sql
var totalsSQL string

//go:embed sql/among.sql
var amongSQL string

const (
	likersSQL = `SELECT item, user_id, since FROM likewise.likes
		WHERE item = $1 AND (since, user_id) < ($2, $3) AND since >= 0
		ORDER BY since DESC, user_id DESC LIMIT $4`
	likedBySQL = `SELECT item, user_id, since FROM likewise.likes
		WHERE user_id = $1 AND (since, item) < ($2, $3) AND since >= 0
		ORDER BY since DESC, item DESC LIMIT $4`
)

// Liked implements [ledger.Reader].
func (l *Ledger) Liked(ctx context.Context, user like.User, items []like.Item) ([]like.State, error) {
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	if err := user.Validate(); err != nil {
		return nil, err
	}
	if err := ledger.CheckItems(items); err != nil {
		return nil, err
	}
	states := make([]like.State, len(items))
	err := l.spread(items, func(s *shard, part []like.Item, places []int) error {
		return s.fresh(ctx, func(ctx context.Context, db querier) error {
			rows, err := db.Query(ctx, likedSQL, string(user), itemTexts(part))
			if err != nil {
				return err
			}
			found, err := collectStates(rows, len(part))
			for k, state := range found {
				states[places[k]] = state
			}
			return err
		})
	})
	return whole(states, l.failure(ctx, "liked", err))
}

// Totals implements [ledger.Reader], always from the primary.
func (l *Ledger) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	if err := ledger.CheckItems(items); err != nil {
		return nil, err
	}
	totals := make([]like.Total, len(items))
	for k, item := range items {
		totals[k].Item = item
	}
	err := l.spread(items, func(s *shard, part []like.Item, places []int) error {
		rows, err := s.read.Query(ctx, totalsSQL, itemTexts(part))
		if err != nil {
			return err
		}
		var place, count, version int64
		_, err = pgx.ForEachRow(rows, []any{&place, &count, &version}, func() error {
			t := &totals[places[place-1]]
			t.Count, t.Version = max(count, 0), uint64(version)
			return nil
		})
		return err
	})
	return whole(totals, l.failure(ctx, "totals", err))
}

// spread asks every shard at once for its part of the items. places says where each
// one of a part stands.
func (l *Ledger) spread(items []like.Item, ask func(s *shard, part []like.Item, places []int) error) error {
	places := l.places(len(items), func(k int) like.Item { return items[k] })
	errs := make([]error, len(l.shards))
	var wg sync.WaitGroup
	for n, mine := range places {
		if len(mine) == 0 {
			continue
		}
		part := make([]like.Item, len(mine))
		for k, place := range mine {
			part[k] = items[place]
		}
		if len(mine) == len(items) { // the usual case needs no goroutine
			return ask(l.shards[n], part, mine)
		}
		wg.Go(func() { errs[n] = ask(l.shards[n], part, mine) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// whole returns an answer, or nothing of it beside an error.
func whole[T any](answer []T, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// Likers implements [ledger.Reader]; facts of one stamp are in descending order of
// their users.
func (l *Ledger) Likers(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
	if err := l.check(ctx); err != nil {
		return ledger.Page{}, err
	}
	if err := item.Validate(); err != nil {
		return ledger.Page{}, err
	}
	if err := ledger.CheckPage(n); err != nil {
		return ledger.Page{}, err
	}
	since, user := int64(after.Since), string(after.User)
	if after == (like.Fact{}) {
		since = math.MaxInt64
	}
	var facts []like.Fact
	err := l.shard(item).fresh(ctx, func(ctx context.Context, db querier) (err error) {
		facts, err = collectFacts(ctx, db, likersSQL, itemText(item), since, user, n+1)
		return err
	})
	return pageOf(facts, n), l.failure(ctx, "likers", err)
}

// LikedBy implements [ledger.Reader]; facts of one stamp are in descending order of
// their items.
func (l *Ledger) LikedBy(ctx context.Context, user like.User, after like.Fact, n int) (ledger.Page, error) {
	if err := l.check(ctx); err != nil {
		return ledger.Page{}, err
	}
	if err := user.Validate(); err != nil {
		return ledger.Page{}, err
	}
	if err := ledger.CheckPage(n); err != nil {
		return ledger.Page{}, err
	}
	since, item := int64(after.Since), itemText(after.Item)
	if after == (like.Fact{}) {
		since = math.MaxInt64
	}
	parts := make([][]like.Fact, len(l.shards))
	errs := make([]error, len(l.shards))
	l.each(func(s *shard) {
		errs[s.number] = s.fresh(ctx, func(ctx context.Context, db querier) (err error) {
			parts[s.number], err = collectFacts(ctx, db, likedBySQL, string(user), since, item, n+1)
			return err
		})
	})
	facts := slices.Concat(parts...)
	slices.SortFunc(facts, func(a, b like.Fact) int {
		return cmp.Or(cmp.Compare(b.Since, a.Since), cmp.Compare(itemText(b.Item), itemText(a.Item)))
	})
	return pageOf(facts, n), l.failure(ctx, "liked by", cmp.Or(errs...))
}

// pageOf makes a page of n from the first facts behind its position.
func pageOf(facts []like.Fact, n int) ledger.Page {
	if len(facts) > n {
		return ledger.Page{Facts: facts[:n:n], More: true}
	}
	return ledger.Page{Facts: facts}
}

func collectFacts(ctx context.Context, db querier, sql string, args ...any) ([]like.Fact, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	var facts []like.Fact
	var item, user string
	var since int64
	_, err = pgx.ForEachRow(rows, []any{&item, &user, &since}, func() error {
		facts = append(facts, like.Fact{Item: itemOf(item), User: like.User(user), Since: like.Stamp(since)})
		return nil
	})
	return whole(facts, err)
}

// LikersAmong implements [ledger.Reader].
func (l *Ledger) LikersAmong(ctx context.Context, item like.Item, users []like.User) ([]like.User, error) {
	if err := l.check(ctx); err != nil {
		return nil, err
	}
	if err := item.Validate(); err != nil {
		return nil, err
	}
	if err := ledger.CheckUsers(users); err != nil {
		return nil, err
	}
	var names []string
	asked := make(map[like.User]bool, len(users))
	for _, user := range users {
		if !asked[user] {
			asked[user] = true
			names = append(names, string(user))
		}
	}
	var likers []like.User
	err := l.shard(item).fresh(ctx, func(ctx context.Context, db querier) error {
		rows, err := db.Query(ctx, amongSQL, itemText(item), names)
		if err != nil {
			return err
		}
		likers, err = pgx.CollectRows(rows, pgx.RowTo[like.User])
		return err
	})
	return whole(likers, l.failure(ctx, "likers among", err))
}

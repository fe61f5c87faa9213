package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"likewise/internal/like"
)

// place says which part of a ledger a database is.
type place struct {
	ledger        string // a UUID
	shard, shards int
}

// recorded reads the place that a database was given, if it was given one.
func recorded(ctx context.Context, pool *pgxpool.Pool) (p place, ok bool, err error) {
	err = pool.QueryRow(ctx, "SELECT ledger::text, shard, shards FROM likewise.layout").Scan(&p.ledger, &p.shard, &p.shards)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, false, nil
	}
	return p, err == nil, err
}

// record gives a database its place, unless another node was faster, and returns the
// place that it has.
func record(ctx context.Context, pool *pgxpool.Pool, p place) (place, error) {
	_, err := pool.Exec(ctx, "INSERT INTO likewise.layout (ledger, shard, shards) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
		p.ledger, p.shard, p.shards)
	if err != nil {
		return place{}, err
	}
	p, _, err = recorded(ctx, pool)
	return p, err
}

// arrange returns, for each shard number, which of the databases it is. Items are
// placed by the number of databases, so that a ledger opens only with all of its
// databases and no other; the order of the URLs does not matter. New databases get
// their places in the order of the URLs as texts, also while other nodes do the same.
func arrange(ctx context.Context, pools []*pgxpool.Pool) ([]int, error) {
	places := make([]place, len(pools))
	known, fresh := -1, 0
	for n, pool := range pools {
		p, ok, err := recorded(ctx, pool)
		if err != nil {
			return nil, err
		}
		places[n] = p
		if ok {
			known = n
		} else {
			fresh++
		}
	}
	if fresh == 0 {
		return match(places)
	}
	id := newUUID()
	if known >= 0 { // another node is at it, or stopped in the middle
		id = places[known].ledger
		if begun, err := untouched(ctx, pools, places); err != nil || !begun {
			return nil, cmp.Or(err, refuse("a database is new, but others hold likes already"))
		}
	}
	if err := settle(ctx, pools, places, id); err != nil {
		return nil, err
	}
	return match(places)
}

// untouched reports whether the databases that have a place hold nothing yet.
func untouched(ctx context.Context, pools []*pgxpool.Pool, places []place) (bool, error) {
	for n, p := range places {
		if p.shards == 0 {
			continue
		}
		var empty bool
		err := pools[n].QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM likewise.likes)
			AND NOT EXISTS (SELECT FROM likewise.outbox) AND NOT EXISTS (SELECT FROM likewise.totals)`).Scan(&empty)
		if err != nil || !empty {
			return false, err
		}
	}
	return true, nil
}

// settle gives every new database one of the places that are free. Nodes that do so at
// once agree on the ledger by the first of these databases.
func settle(ctx context.Context, pools []*pgxpool.Pool, places []place, id string) error {
	taken := make([]bool, len(places))
	for _, p := range places {
		if p.shards == len(places) {
			taken[p.shard] = true
		}
	}
	for _, n := range sorted(pools) {
		if places[n].shards != 0 {
			continue
		}
		free := slices.Index(taken, false)
		p, err := record(ctx, pools[n], place{ledger: id, shard: max(free, 0), shards: len(places)})
		if err != nil {
			return err
		}
		places[n], id = p, p.ledger
		if p.shards == len(places) {
			taken[p.shard] = true
		}
	}
	return nil
}

// sorted returns the numbers of databases in an order that every node finds.
func sorted(pools []*pgxpool.Pool) []int {
	order := make([]int, len(pools))
	for n := range order {
		order[n] = n
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(pools[a].Config().ConnString(), pools[b].Config().ConnString())
	})
	return order
}

// refuse says that databases do not make a ledger.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s. Name exactly the databases that this ledger was made with; to change their number, move it with `likewise move`",
		like.ErrInvalid, fmt.Sprintf(format, args...))
}

// match checks that places are those of one whole ledger.
func match(places []place) ([]int, error) {
	order := make([]int, len(places))
	taken := make([]bool, len(places))
	for n, p := range places {
		switch {
		case p.shards != len(places):
			return nil, refuse("database %d belongs to a ledger of %d databases, %d are configured", n+1, p.shards, len(places))
		case p.ledger != places[0].ledger:
			return nil, refuse("databases 1 and %d belong to different ledgers", n+1)
		case taken[p.shard]:
			return nil, refuse("part %d of the ledger is configured twice", p.shard+1)
		}
		taken[p.shard] = true
		order[p.shard] = n
	}
	return order, nil
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Shards implements [ledger.Sharded].
func (l *Ledger) Shards() int { return len(l.shards) }

// ShardOf implements [ledger.Sharded].
func (l *Ledger) ShardOf(item like.Item) int {
	if len(l.shards) == 1 {
		return 0
	}
	return shardOf(item, len(l.shards))
}

func (l *Ledger) shard(item like.Item) *shard { return l.shards[l.ShardOf(item)] }

// shardOf returns where an item lives: the shard with the largest hash of item and
// number (rendezvous hashing, Thaler and Ravishankar 1998). It must never change.
func shardOf(item like.Item, shards int) int {
	// FNV-1a; a collection has no 0 byte, so that names are not confused.
	h := uint64(14695981039346656037)
	for _, part := range [3]string{item.Collection, "\x00", item.ID} {
		for k := range len(part) {
			h = (h ^ uint64(part[k])) * 1099511628211
		}
	}
	best, most := 0, uint64(0)
	for n := range shards {
		if score := mix(h + uint64(n)*0x9e3779b97f4a7c15); score > most {
			best, most = n, score
		}
	}
	return best
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// places lists, for each shard, which of n things belong to it, in order.
func (l *Ledger) places(n int, item func(k int) like.Item) [][]int {
	places := make([][]int, len(l.shards))
	for k := range n {
		at := l.ShardOf(item(k))
		places[at] = append(places[at], k)
	}
	return places
}

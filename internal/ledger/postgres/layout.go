package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

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
// their places in the order given.
func arrange(ctx context.Context, pools []*pgxpool.Pool) ([]int, error) {
	places := make([]place, len(pools))
	old, fresh := place{}, 0
	for n, pool := range pools {
		p, ok, err := recorded(ctx, pool)
		if err != nil {
			return nil, err
		}
		if ok {
			old = p
		} else {
			fresh++
		}
		places[n] = p
	}
	if fresh == len(pools) {
		old.ledger = newUUID()
		for n, pool := range pools {
			p, err := record(ctx, pool, place{ledger: old.ledger, shard: n, shards: len(pools)})
			if err != nil {
				return nil, err
			}
			places[n] = p
		}
	}
	return match(places)
}

// match checks that places are those of one whole ledger.
func match(places []place) ([]int, error) {
	refuse := func(format string, args ...any) ([]int, error) {
		return nil, fmt.Errorf("%w: %s. Name exactly the databases that this ledger was made with; to change their number, move it with `likewise move`",
			like.ErrInvalid, fmt.Sprintf(format, args...))
	}
	order := make([]int, len(places))
	taken := make([]bool, len(places))
	for n, p := range places {
		switch {
		case p.shards == 0:
			return refuse("database %d is new, but others hold a ledger already", n+1)
		case p.shards != len(places):
			return refuse("database %d belongs to a ledger of %d databases, %d are configured", n+1, p.shards, len(places))
		case p.ledger != places[0].ledger:
			return refuse("databases 1 and %d belong to different ledgers", n+1)
		case taken[p.shard]:
			return refuse("part %d of the ledger is configured twice", p.shard+1)
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

// shard returns where an item lives: the shard with the largest hash of item and
// number (rendezvous hashing, Thaler and Ravishankar 1998). It must never change.
func (l *Ledger) shard(item like.Item) *shard {
	if len(l.shards) == 1 {
		return l.shards[0]
	}
	return l.shards[shardOf(item, len(l.shards))]
}

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
		at := 0
		if len(l.shards) > 1 {
			at = shardOf(item(k), len(l.shards))
		}
		places[at] = append(places[at], k)
	}
	return places
}

package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/internal/like"
)

// retention is how long the journal of drains is kept. A node that could not read it
// for half as long begins anew.
const retention = time.Minute

//go:embed sql/follow.sql
var followSQL string

// journal is how far this node has followed the drains of all nodes.
type journal struct {
	from uint64     // every drain of an older transaction was seen
	seen []string   // drains of later ones that were seen too
	last like.Stamp // the largest that was drained, which only grows
	era  int64      // of the transactions, 0 when they have none yet
	at   like.Stamp // when, by the database's clock
}

// columns are totals as the database returns them.
type columns struct {
	items            []string
	counts, versions []int64
}

func (c columns) totals() ([]like.Total, error) {
	n := len(c.items)
	if len(c.counts) != n || len(c.versions) != n {
		return nil, fmt.Errorf("a drain has columns of %d, %d and %d totals", n, len(c.counts), len(c.versions))
	}
	totals := make([]like.Total, n)
	for k := range totals {
		totals[k] = like.Total{Item: itemOf(c.items[k]), Count: max(c.counts[k], 0), Version: uint64(c.versions[k])}
	}
	return totals, nil
}

// follow tells the feeds what was drained since the last time, by anyone. When it may
// have missed something, every feed ends and begins anew.
func (s *shard) follow(ctx context.Context) error {
	s.following.Lock()
	defer s.following.Unlock()
	ctx, cancel := context.WithTimeout(ctx, tendTimeout)
	defer cancel()
	rows, err := s.write.Query(ctx, followSQL, strconv.FormatUint(s.journal.from, 10), s.journal.seen)
	if err != nil {
		return err
	}
	var fresh []like.Total
	var from, tx uint64
	var last, now, oldest, waiting, era int64
	var moved columns
	seen := []string{}
	_, err = pgx.ForEachRow(rows, []any{
		&from, &last, &now, &oldest, &waiting, &era, &tx, &moved.items, &moved.counts, &moved.versions,
	}, func() error {
		if tx == 0 {
			return nil
		}
		seen = append(seen, strconv.FormatUint(tx, 10))
		totals, err := moved.totals() // none of a drain that was seen
		fresh = append(fresh, totals...)
		return err
	})
	if err != nil {
		return err
	}
	s.alive.Store(time.Now().UnixNano())
	s.knows(like.Stamp(max(last, waiting)))
	if last := like.Stamp(last); last < s.journal.last {
		err := fmt.Errorf("%w: the database has gone back in time: drains up to %s were seen, it has them up to %s. "+
			"Acknowledged likes may be lost; this process knows totals that are not true any more, and has to begin anew",
			like.ErrCorrupt, s.journal.last.Time().Format(time.RFC3339), last.Time().Format(time.RFC3339))
		s.log.Error("the ledger cannot go on", "error", err)
		s.cfg.OnFatal(err)
	}
	s.note(journal{from: from, seen: seen, last: like.Stamp(last), era: era, at: like.Stamp(now)})
	s.broadcast.Publish(fresh)
	s.lag.Store(0)
	if oldest > 0 {
		s.lag.Store(max(0, now-oldest) * int64(time.Microsecond))
	}
	return nil
}

// note moves on to what was read now.
func (s *shard) note(next journal) {
	last := s.journal
	s.journal = next
	switch silence := next.at.Time().Sub(last.at.Time()); {
	case last.at == 0: // the first time
	case silence > retention/2:
		s.log.Warn("drains may have been missed, totals are read again", "silence", silence.String())
		s.broadcast.Gap()
	case last.era != 0 && next.era != last.era: // what was seen by its transaction may be another one
		s.log.Warn("the database crashed, or another one took over; totals are read again")
		s.broadcast.Gap()
	}
}

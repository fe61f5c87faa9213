package postgres

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/internal/like"
)

const (
	drainRows   = 256              // outbox rows of one drain
	drainTime   = time.Second      // of all drains of a turn
	tendTimeout = 30 * time.Second // of one statement; the next one begins anew
	trimEvery   = 10 * time.Second
)

//go:embed sql/drain.sql
var drainSQL string

//go:embed sql/sweep.sql
var sweepSQL string

//go:embed sql/trim.sql
var trimSQL string

// tend drains the outbox, tells what was drained here and elsewhere, and throws away
// what nobody needs any more. A database that is away is tried again at the next turn.
func (s *shard) tend(ctx context.Context) {
	var trimmed time.Time
	failing := false
	for sleep(ctx, s.cfg.DrainInterval) {
		err := s.turn(ctx)
		if err == nil && s.cfg.Drain && time.Since(trimmed) > trimEvery {
			trimmed = time.Now()
			err = s.exec(ctx, trimSQL, retention.String())
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.log.Error("totals stand still", "error", err)
		case err == nil && failing:
			s.log.Info("totals move again")
		}
		failing = err != nil
	}
}

func (s *shard) turn(ctx context.Context) error {
	if s.cfg.Drain {
		if err := s.drain(ctx); err != nil {
			return err
		}
	}
	return s.follow(ctx)
}

// drain moves totals until the outbox has no full helping left, or for so long that
// what others drained has to be looked at.
func (s *shard) drain(ctx context.Context) error {
	begin := time.Now()
	for moved := false; ; moved = true {
		rows, totals, err := s.drainOnce(ctx)
		if err != nil {
			return err
		}
		s.alive.Store(time.Now().UnixNano())
		s.drained.Add(uint64(rows))
		if len(totals) > 0 {
			s.broadcast.Publish(totals)
			if s.cfg.OnDrain != nil {
				s.cfg.OnDrain(totals)
			}
		}
		if rows == drainRows && time.Since(begin) < drainTime {
			continue
		}
		if rows > 0 || moved {
			return s.exec(ctx, sweepSQL)
		}
		return nil
	}
}

func (s *shard) drainOnce(ctx context.Context) (rows int64, totals []like.Total, err error) {
	ctx, cancel := context.WithTimeout(ctx, tendTimeout)
	defer cancel()
	var moved columns
	err = s.write.QueryRow(ctx, drainSQL, drainRows).Scan(&rows, &moved.items, &moved.counts, &moved.versions)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	totals, err = moved.totals()
	return rows, totals, err
}

// exec runs a statement without an answer.
func (s *shard) exec(ctx context.Context, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, tendTimeout)
	defer cancel()
	_, err := s.write.Exec(ctx, sql, args...)
	return err
}

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
	drainRows   = 256              // outbox rows of one drain, at most
	drainCuts   = 13               // how often the items of one can be halved
	drainItems  = 1 << drainCuts   // of one drain, but a row more for the last one
	drainTime   = time.Second      // of all drains of a turn, and of one that is not too large
	tendTimeout = 30 * time.Second // of one statement; the next one begins anew
	trimEvery   = 10 * time.Second
)

//go:embed sql/drain.sql
var drainSQL string

//go:embed sql/sweep.sql
var sweepSQL string

//go:embed sql/trim.sql
var trimSQL string

// tend drains the outbox and throws away what nobody needs any more.
func (s *shard) tend(ctx context.Context) {
	var trimmed time.Time
	s.repeat(ctx, "totals", func(ctx context.Context) error {
		err := s.drain(ctx)
		if err == nil && time.Since(trimmed) > trimEvery {
			trimmed = time.Now()
			err = s.exec(ctx, trimSQL, retention.String())
		}
		return err
	})
}

// repeat takes turns until ctx is done. A database that is away is tried again at the
// next one.
func (s *shard) repeat(ctx context.Context, what string, turn func(ctx context.Context) error) {
	failing := false
	for sleep(ctx, s.cfg.DrainInterval) {
		err := turn(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.log.Error(what+" stand still", "error", err)
		case err == nil && failing:
			s.log.Info(what + " move again")
		}
		failing = err != nil
	}
}

// drain moves totals until the outbox has no full helping left, or for so long that
// what lies behind the drains has to be swept.
func (s *shard) drain(ctx context.Context) error {
	begin := time.Now()
	for moved := false; ; moved = true {
		h, err := s.drainOnce(ctx)
		if err != nil {
			return err
		}
		s.alive.Store(time.Now().UnixNano())
		s.drained.Add(uint64(h.rows))
		if len(h.totals) > 0 {
			s.broadcast.Publish(h.totals)
			if s.cfg.OnDrain != nil {
				s.cfg.OnDrain(h.totals)
			}
		}
		if h.full && time.Since(begin) < drainTime {
			continue
		}
		if h.rows > 0 || moved {
			return s.exec(ctx, sweepSQL)
		}
		return nil
	}
}

// helping is what one drain took.
type helping struct {
	rows   int64
	full   bool // there may be more
	totals []like.Total
}

func (s *shard) drainOnce(ctx context.Context) (h helping, err error) {
	begin := time.Now()
	defer func() { s.adapt(h, time.Since(begin), err) }()
	ctx, cancel := context.WithTimeout(ctx, tendTimeout)
	defer cancel()
	var moved columns
	var found int64
	err = s.write.QueryRow(ctx, drainSQL, drainRows, drainItems>>s.cut.Load()).
		Scan(&found, &h.rows, &moved.items, &moved.counts, &moved.versions)
	if errors.Is(err, pgx.ErrNoRows) {
		return helping{}, nil
	}
	if err != nil {
		return helping{}, err
	}
	h.full = found == drainRows || h.rows < found
	h.totals, err = moved.totals()
	return h, err
}

// adapt fits the next drain to how fast the last one was. What failed may have been too
// much for the time that a statement has, so that no part of it was done: a single row
// comes next.
func (s *shard) adapt(h helping, took time.Duration, err error) {
	cut := s.cut.Load()
	switch {
	case err != nil:
		cut = drainCuts
	case took > drainTime:
		cut++
	case h.full && took < drainTime/4:
		cut--
	}
	s.cut.Store(min(max(cut, 0), drainCuts))
}

// exec runs a statement without an answer.
func (s *shard) exec(ctx context.Context, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, tendTimeout)
	defer cancel()
	_, err := s.write.Exec(ctx, sql, args...)
	return err
}

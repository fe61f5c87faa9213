package server

import (
	"context"

	"likewise/internal/config"
	"likewise/internal/counts"
	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/internal/limit"
	"likewise/internal/redis"
)

// store is the ledger with what nodes share beside it.
type store struct {
	ledger.Ledger
	feed   ledger.Feeder // of the ledger, or of the bus where there is one
	shared *redis.Client // nil without Redis
	bus    *redis.Bus    // nil without Redis
}

// openStore connects to Redis, where there is one, and opens the ledger. Both are
// closed at the end, the ledger first.
func (s *Server) openStore(ctx context.Context, cfg config.Config, o Options) (*store, error) {
	facts := &store{}
	var moved func([]like.Total)
	if cfg.Redis != "" {
		shared, err := redis.Open(redisConfig(cfg), s.log, s.registry)
		if err != nil {
			return nil, err
		}
		s.cleanup = append(s.cleanup, shared.Close)
		facts.shared, moved = shared, shared.Publish
	}
	l, err := openLedger(ctx, cfg, o, s.registry, moved)
	if err != nil {
		return nil, err
	}
	s.cleanup = append(s.cleanup, l.Close)
	facts.Ledger, facts.feed = l, l
	if facts.shared != nil {
		facts.bus = redis.NewBus(facts.shared, l)
		facts.feed = facts.bus
	}
	return facts, nil
}

// cache is the cache of totals that nodes share, or nil.
func (f *store) cache() counts.Shared {
	if f.shared == nil {
		return nil
	}
	return f.shared
}

// limiter limits the likes of a user, on all nodes together where they share Redis.
func (f *store) limiter(cfg limit.Config) (limit.Limiter, error) {
	if f.shared == nil {
		return limit.NewLocal(cfg)
	}
	return redis.NewLimiter(f.shared, "user", cfg)
}

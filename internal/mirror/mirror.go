package mirror

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// lastWrites is for what is under way, and one more flush, after the end was asked for.
const lastWrites = 5 * time.Second

// Mirror writes totals into columns. Its owner calls Run, once.
type Mirror struct {
	feeder  ledger.Feeder
	log     *slog.Logger
	columns map[string]*column // by collection
}

// New returns a mirror of what r knows and starts nothing. cfg must be valid, or
// the error says why it is not; reg may be nil.
func New(f ledger.Feeder, r ledger.Reader, cfg Config, reg prometheus.Registerer, log *slog.Logger) (*Mirror, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Mirror{feeder: f, log: log.With(slog.String("component", "mirror")), columns: map[string]*column{}}
	for collection, table := range cfg.Tables {
		c, err := newColumn(collection, table, cfg, r, m.log)
		if err != nil {
			return nil, err
		}
		c.metrics = newMetrics(reg, collection, func() float64 { return c.changes.lag(time.Now()).Seconds() })
		m.columns[collection] = c
	}
	return m, nil
}

// Run mirrors until ctx is done, flushes once more within 5 s, and returns nil. It
// returns [like.ErrClosed] when the ledger closes first, and no other error: what a
// database refuses is logged, counted and tried again. Its goroutines have ended when
// it returns.
func (m *Mirror) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	late, cut := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx by lastWrites
	defer cut()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWrites, cut) })()

	var wg sync.WaitGroup
	for _, c := range m.columns {
		wg.Go(func() { c.run(ctx, late) })
	}
	err := m.follow(ctx)
	stop()
	wg.Wait()
	return err
}

// follow notes what changes until ctx is done or the ledger is closed. Once a feed is
// live, sweeps may begin to look for what the time before it may lack: since the last
// one ended, or since nobody knows when.
func (m *Mirror) follow(ctx context.Context) error {
	var lost time.Time // since when no feed has been live
	return ledger.Follow(ctx, m.feeder, ledger.Follower{
		Live: func() {
			for _, c := range m.columns {
				c.changes.feedLost(lost)
				c.changes.askSweep()
			}
			lost = time.Time{}
		},
		Changed: func(totals []like.Total) {
			now := time.Now()
			for _, t := range totals {
				if c := m.columns[t.Item.Collection]; c != nil {
					c.changes.add(t.Item.ID, now)
				}
			}
		},
		Lost: func(err error) {
			m.log.WarnContext(ctx, "feed of totals ended early; the tables are swept", slog.Any("error", err))
			lost = earlier(lost, time.Now())
			for _, c := range m.columns {
				c.changes.feedLost(lost)
			}
		},
	})
}

// waitUntil reports false as soon as ctx is done.
func waitUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

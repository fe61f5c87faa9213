package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"likewise/internal/config"
	"likewise/internal/ledger"
	"likewise/internal/ledger/pebble"
	"likewise/internal/ledger/postgres"
	"likewise/internal/like"
	"likewise/internal/reconcile"
	"likewise/internal/transfer"
)

// ledgerDir is where the store is inside the data directory.
func ledgerDir(cfg config.Config) string { return filepath.Join(cfg.DataDir, "ledger") }

// openLedger opens the ledger that the configuration names. reg may be nil; moved is
// told which totals this process moved in a shared ledger, and may be nil.
func openLedger(ctx context.Context, cfg config.Config, o Options, reg prometheus.Registerer, moved func([]like.Total)) (ledger.Ledger, error) {
	if cfg.Embedded() {
		return openPebble(cfg, o, reg)
	}
	return openPostgres(ctx, cfg, o, reg, moved)
}

func openPostgres(ctx context.Context, cfg config.Config, o Options, reg prometheus.Registerer, moved func([]like.Total)) (ledger.Ledger, error) {
	to := postgresConfig(cfg)
	to.Logger = o.Log.With("component", "ledger")
	to.Now = o.Now
	m := newLedgerMetrics(reg)
	to.OnCommit = func(c postgres.Commit) { m.observe(c.Commands, c.Wait) }
	to.OnDrain = moved
	l, err := postgres.Open(ctx, to)
	if errors.Is(err, like.ErrUnavailable) {
		// The driver lists what it tried in lines of their own.
		tried := strings.Join(strings.Fields(err.Error()), " ")
		return nil, fmt.Errorf("%s. Start PostgreSQL, or name a database that this machine may reach with --ledger", tried)
	}
	if err != nil {
		return nil, err
	}
	if reg != nil {
		reg.MustRegister(newPostgresCollector(l.Stats))
	}
	return l, nil
}

func openPebble(cfg config.Config, o Options, reg prometheus.Registerer) (ledger.Ledger, error) {
	to := pebbleConfig(cfg)
	to.Dir = ledgerDir(cfg)
	to.Logger = o.Log.With("component", "ledger")
	if o.Now != nil {
		to.Now = o.Now
	}
	m := newLedgerMetrics(reg)
	to.OnCommit = func(c pebble.Commit) { m.observe(c.Commands, c.Wait) }
	l, err := pebble.Open(to)
	if err != nil {
		return nil, advise(err)
	}
	if reg != nil {
		reg.MustRegister(newLedgerCollector(l.Stats))
	}
	return l, nil
}

// advise adds what to do to the error of a store that does not open.
func advise(err error) error {
	switch {
	case errors.Is(err, like.ErrCorrupt):
		return fmt.Errorf("%w. To go back to a backup, move the ledger directory away and use `likewise restore`; "+
			"if the loss that is named can be accepted, start once with --pebble-accept-rollback", err)
	case errors.Is(err, like.ErrUnavailable):
		return fmt.Errorf("%w. If a likewise server uses it, talk to that one or stop it; else choose another directory with --data-dir", err)
	}
	return err
}

// OpenLedger opens the ledger of a data directory that no server has open, for
// work without a server. The caller closes it.
func OpenLedger(ctx context.Context, cfg config.Config, log *slog.Logger) (ledger.Ledger, error) {
	return openLedger(ctx, cfg, Options{Log: log}, nil, nil)
}

// ReconcileOffline audits every item of a data directory that no server has open,
// and calls found for each that differs.
func ReconcileOffline(
	ctx context.Context, cfg config.Config, log *slog.Logger, repair bool, found func(ledger.Audit),
) (transfer.Tally, error) {
	facts, err := OpenLedger(ctx, cfg, log)
	if err != nil {
		return transfer.Tally{}, err
	}
	keeper := reconcile.New(facts, auditConfig(cfg), nil, slog.New(slog.DiscardHandler))
	sum, err := transfer.Reconcile(ctx, keeper, repair, found)
	if stopped, ok := errors.AsType[*reconcile.StoppedError](err); ok {
		sum.Stopped, err = stopped.Error(), nil
	}
	return sum, errors.Join(err, facts.Close())
}

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/ledger"
	"likewise/internal/ledger/pebble"
	"likewise/internal/like"
	"likewise/internal/move"
	"likewise/internal/transfer"
)

const (
	moveCallTimeout = time.Minute     // for one call of a server that is moved from or to
	goneWithin      = 5 * time.Second // for a source to say that it still serves
)

// Place is a ledger that facts are moved from or to.
type Place struct {
	// Address is URLs of PostgreSQL databases, separated by commas; the URL of a
	// server's admin listener; or a data directory, with or without "pebble:" in
	// front.
	Address string
	// Token is for a server; "" makes one with the key of the configuration.
	Token string
}

// Move makes the ledger at one place hold exactly the facts of another. A source
// that others use stands still at the end, until ctx is done or the source is gone;
// both are then the end of a move that came to its end.
func Move(ctx context.Context, cfg config.Config, log *slog.Logger, how move.Config, from, to Place) (report move.Report, err error) {
	if from.Address == to.Address {
		return report, fmt.Errorf("%w: --from and --to are the same", like.ErrInvalid)
	}
	source, err := from.open(ctx, cfg, log, "--from")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, source.close()) }()
	target, err := to.open(ctx, cfg, log, "--to")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, target.close()) }()
	how.Switch = func(frozen context.Context, r move.Report) error {
		// Now others may open it.
		if err := target.close(); err != nil || !source.served {
			return err
		}
		fmt.Fprintf(how.Out, "The target holds exactly the likes of the source, which has stood still for %v and goes on so.\n"+
			"Now let everything use the target, stop the source's servers, and then end this with Ctrl-C.\n",
			r.Frozen.Round(time.Millisecond))
		<-frozen.Done()
		return source.left(ctx, frozen, how)
	}
	if !source.served {
		how.Settle = 0 // nothing changes
	}
	return move.Run(ctx, how, source.source, target.target)
}

// place is an open ledger.
type place struct {
	source move.Source
	target move.Target
	ready  func(context.Context) error
	served bool // others may write to it
	close  func() error
}

// left says what the end of a standstill means.
func (p *place) left(ctx, frozen context.Context, how move.Config) error {
	if ctx.Err() != nil {
		return nil // the operator's word
	}
	ask, cancel := context.WithTimeout(ctx, goneWithin)
	defer cancel()
	if p.ready(ask) != nil {
		fmt.Fprintln(how.Out, "The source does not answer any more. If it was stopped, all is done.")
		return nil
	}
	return fmt.Errorf("%w. The source accepts likes again, which the target does not have: "+
		"keep to the source and run the same command with --resume", context.Cause(frozen))
}

// open opens the ledger at a place; flag is where a person gave the address.
func (p Place) open(ctx context.Context, cfg config.Config, log *slog.Logger, flag string) (*place, error) {
	scheme, _, _ := strings.Cut(p.Address, "://")
	switch {
	case scheme == "postgres" || scheme == "postgresql":
		return p.openDatabases(ctx, cfg, log, flag)
	case scheme == "http" || scheme == "https":
		return p.openServer(cfg)
	case scheme != p.Address || p.Address == "":
		return nil, fmt.Errorf("%w: %s: write postgres://…, the URL of a server's admin listener such as http://127.0.0.1:9090, or a data directory", like.ErrInvalid, flag)
	default:
		return p.openDirectory(cfg, log, flag)
	}
}

func (p Place) openDatabases(ctx context.Context, cfg config.Config, log *slog.Logger, flag string) (*place, error) {
	var err error
	if cfg.Ledger, err = config.ParseDatabases(flag, p.Address); err != nil {
		return nil, fmt.Errorf("%w: %w", like.ErrInvalid, err)
	}
	// Lists on replicas may lack what changed last.
	cfg.Postgres.Replicas = nil
	facts, err := OpenLedger(ctx, cfg, log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return opened(facts, true)
}

func (p Place) openDirectory(cfg config.Config, log *slog.Logger, flag string) (*place, error) {
	cfg.DataDir = strings.TrimPrefix(p.Address, "pebble:")
	dir := ledgerDir(cfg)
	if _, err := os.Stat(filepath.Join(dir, "db")); err != nil && flag == "--from" {
		return nil, fmt.Errorf("%w: %s: %s is no data directory with likes: %w", like.ErrInvalid, flag, cfg.DataDir, err)
	}
	to := pebbleConfig(cfg)
	to.Dir, to.Logger = dir, log.With("component", "ledger")
	facts, err := pebble.Open(to)
	if errors.Is(err, like.ErrUnavailable) {
		return nil, fmt.Errorf("%s: %w. If a likewise server uses it, give the URL of its admin listener instead", flag, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, advise(err))
	}
	return opened(facts, false)
}

func opened(facts ledger.Ledger, served bool) (*place, error) {
	source, ok := facts.(move.Source)
	if !ok {
		return nil, errors.Join(fmt.Errorf("this ledger cannot stand still: %w", errors.ErrUnsupported), facts.Close())
	}
	return &place{source: source, target: facts, ready: facts.Ready, served: served, close: facts.Close}, nil
}

func (p Place) openServer(cfg config.Config) (*place, error) {
	at, err := Admin(cfg, p.Address, p.Token, auth.ScopeAdmin)
	if err != nil {
		return nil, err
	}
	// The default transport keeps two connections, fewer than there are calls at a time.
	transport := &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute}
	at.Client, at.Timeout = &http.Client{Transport: transport}, moveCallTimeout
	store := transfer.Store{Remote: at}
	return &place{
		source: store, target: store, ready: at.Ready, served: true,
		close: func() error { transport.CloseIdleConnections(); return nil },
	}, nil
}

package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"likewise/internal/like"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock of whoever makes or changes the tables.
const migrationLock = 0x6c696b6577697365

// migrationWait is the time between two tries to get it.
const migrationWait = 20 * time.Millisecond

// openTimeout bounds a start. Another node may be making the tables meanwhile.
const openTimeout = time.Minute

// Open connects to the databases, makes or upgrades their tables, and starts writing
// and draining. Any number of nodes may open one ledger at once. ctx bounds the start
// only.
func Open(ctx context.Context, cfg Config) (*Ledger, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Ledger{cfg: cfg, sockets: newSockets()}
	l.life, l.end = context.WithCancel(context.WithoutCancel(ctx))
	starting, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := l.open(starting); err != nil {
		l.end()
		l.searches.Wait()
		l.sockets.cut()
		l.each((*shard).release)
		return nil, err
	}
	for _, s := range l.shards {
		s.start(context.WithoutCancel(ctx))
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context) error {
	var pools []*pgxpool.Pool
	for n, url := range l.cfg.URLs {
		s := &shard{cfg: &l.cfg, sockets: l.sockets, broadcast: &l.broadcast, newest: &l.newest, queue: newQueue(l.cfg.QueueLength, l.cfg.QueueAge)}
		s.positions.turn = make(chan struct{}, 1)
		l.shards = append(l.shards, s)
		if err := s.connect(ctx, url); err != nil {
			return failure(ctx, fmt.Sprintf("database %d", n+1), err)
		}
		pools = append(pools, s.write)
	}
	order, err := arrange(ctx, pools)
	if err != nil {
		return failure(ctx, "layout", err)
	}
	arranged := make([]*shard, len(order))
	for number, n := range order {
		arranged[number] = l.shards[n]
		arranged[number].number = number
		arranged[number].log = l.cfg.Logger.With("database", number+1)
	}
	l.shards = arranged
	for n, url := range l.cfg.Replicas {
		if err := l.addReplica(ctx, n, url); err != nil {
			return failure(ctx, "replica", err)
		}
	}
	for _, s := range l.shards {
		// From now on nothing that is drained is missed.
		s.journal.from = math.MaxInt64
		if err := s.follow(ctx); err != nil {
			return failure(ctx, "journal", err)
		}
	}
	return nil
}

// connect makes the connections of a shard and its tables.
func (s *shard) connect(ctx context.Context, url string) (err error) {
	writing := s.cfg.Writers + 1 // one for draining
	if s.write, err = s.cfg.pool(ctx, s.sockets, url, writing); err != nil {
		return err
	}
	if s.read, err = s.cfg.pool(ctx, s.sockets, url, s.cfg.MaxConnections-writing); err != nil {
		return err
	}
	if err := s.cfg.checkDatabase(ctx, s.write); err != nil {
		return err
	}
	return migrate(ctx, s.write)
}

// pool makes a pool of connections. It connects when a connection is needed.
func (c *Config) pool(ctx context.Context, all *sockets, url string, size int) (*pgxpool.Pool, error) {
	to, err := pgxpool.ParseConfig(url)
	if err != nil { // its text may hold the password
		return nil, fmt.Errorf("%w: the URL of the database is not one that can be used", like.ErrInvalid)
	}
	to.MaxConns = int32(size)
	to.MaxConnLifetimeJitter = to.MaxConnLifetime / 10
	to.ConnConfig.ConnectTimeout = 5 * time.Second
	to.ConnConfig.OnNotice = heed
	to.ConnConfig.DialFunc = all.through(to.ConnConfig.DialFunc)
	if to.ConnConfig.RuntimeParams["application_name"] == "" {
		to.ConnConfig.RuntimeParams["application_name"] = "likewise"
	}
	if c.PgBouncer {
		to.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return pgxpool.NewWithConfig(context.WithoutCancel(ctx), to)
}

// checkDatabase refuses databases that cannot keep the promises.
func (c *Config) checkDatabase(ctx context.Context, pool *pgxpool.Pool) error {
	var version int
	var encoding, fsync, pages, commit, isolation string
	err := pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
		current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
		current_setting('default_transaction_isolation')`).
		Scan(&version, &encoding, &fsync, &pages, &commit, &isolation)
	switch {
	case err != nil:
		return err
	case version < 140000:
		return fmt.Errorf("%w: PostgreSQL 14 or later is needed, the server is %d", like.ErrInvalid, version/10000)
	case encoding != "UTF8":
		return fmt.Errorf("%w: the database's encoding must be UTF8, not %s", like.ErrInvalid, encoding)
	case isolation != "read committed": // statements have to see what was committed before them
		return fmt.Errorf("%w: the database's default_transaction_isolation must be read committed, not %s", like.ErrInvalid, isolation)
	case !c.AcceptUnsafe && (fsync == "off" || pages == "off" || commit == "off"):
		return fmt.Errorf("%w: the database may lose what it committed (fsync %s, full_page_writes %s, synchronous_commit %s): "+
			"turn them on, or accept it with --postgres-accept-unsafe", like.ErrInvalid, fsync, pages, commit)
	case len(c.Replicas) > 0 && commit == "off": // what was acknowledged may be in no log yet that they could be asked for
		return fmt.Errorf("%w: with synchronous_commit off, reads from replicas can miss acknowledged likes: "+
			"turn it on, or name no --postgres-replicas", like.ErrInvalid)
	}
	return nil
}

// migrate makes or upgrades the tables while no other node does. The lock belongs to
// a transaction, which PgBouncer keeps on one connection.
func migrate(ctx context.Context, pool *pgxpool.Pool) (err error) {
	tx, err := lockMigrations(ctx, pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(tx.Rollback(ctx))) }()
	if _, err := pool.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS likewise"); err != nil {
		return err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { err = errors.Join(err, db.Close()) }()
	steps, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName("likewise.migrations"))
	if err != nil {
		return err
	}
	_, err = steps.Up(ctx)
	return err
}

// lockMigrations begins the transaction that only one node has at a time. Others try
// again, since whoever waits in the database holds a connection that the one which
// migrates may need: a PgBouncer may have few.
func lockMigrations(ctx context.Context, pool *pgxpool.Pool) (pgx.Tx, error) {
	for {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return nil, err
		}
		var locked bool
		err = tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(migrationLock)).Scan(&locked)
		if err == nil && locked {
			return tx, nil
		}
		if err := errors.Join(err, ignoreClosed(tx.Rollback(ctx))); err != nil {
			return nil, err
		}
		if !sleep(ctx, migrationWait) {
			return nil, context.Cause(ctx)
		}
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) {
		return nil
	}
	return err
}

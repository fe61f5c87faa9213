package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

const (
	connectTimeout = 10 * time.Second
	retryLeast     = 500 * time.Millisecond // before the first repetition of what failed
	retryMost      = 10 * time.Second       // what that doubles to
)

// column keeps the count column of one table. Its worker, run, does one thing at a
// time over one connection; only changes and metrics are shared with others.
type column struct {
	collection string
	cfg        Config
	place      place
	reader     ledger.Reader
	log        *slog.Logger
	metrics    metrics
	changes    *changes

	conn    *pgx.Conn // nil while there is none
	shape   shape     // of the table when it was last looked up
	indexed bool      // whether an index finds its rows by id
	sql     statements
	sweep   sweep
	flushAt time.Time
	retry   time.Duration
	state   state

	halving  time.Duration // halvingLimit outside tests
	refusals map[[2]string]struct{}
}

// state is what the log last said.
type state string

const (
	unknown     state = ""
	working     state = "working"
	unfit       state = "unfit"
	unreachable state = "unreachable"
	unreadable  state = "unreadable"
)

func newColumn(collection string, table Table, cfg Config, reader ledger.Reader, log *slog.Logger) (*column, error) {
	p, err := table.parse()
	if err != nil {
		return nil, err
	}
	if p.conn.ConnectTimeout == 0 {
		p.conn.ConnectTimeout = connectTimeout
	}
	// Statements without names work behind a pooler that lends a connection for a
	// transaction, and are planned for the number of ids that they get.
	p.conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	p.conn.RuntimeParams["client_encoding"] = "UTF8"
	if p.conn.RuntimeParams["application_name"] == "" {
		p.conn.RuntimeParams["application_name"] = "likewise mirror"
	}
	return &column{
		collection: collection, cfg: cfg, place: p, reader: reader, changes: newChanges(cfg.MaxChanged), retry: retryLeast,
		halving: halvingLimit, refusals: map[[2]string]struct{}{},
		log: log.With(slog.String("collection", collection), slog.String("table", table.Name)),
	}, nil
}

// run works until ctx is done, and then flushes once more, until late is done. It
// starts again after every failure, a little later each time.
func (c *column) run(ctx, late context.Context) {
	for ctx.Err() == nil {
		err := c.work(ctx, late)
		if err == nil || ctx.Err() != nil {
			break
		}
		c.failed(ctx, late, err)
		waitUntil(ctx, time.Now().Add(c.retry/2+rand.N(c.retry/2)))
		c.retry = min(2*c.retry, retryMost)
	}
	if c.conn != nil {
		if err := c.flush(late); err != nil {
			c.failed(late, late, err)
		}
	}
	c.disconnect(late)
}

// work connects and takes one step after another until ctx is done or one fails.
func (c *column) work(ctx, late context.Context) error {
	if err := c.connect(ctx, late); err != nil {
		return err
	}
	c.flushAt = time.Now()
	for {
		at, step := c.next(time.Now())
		if !waitUntil(ctx, at) {
			return nil
		}
		bounded, cancel := context.WithTimeout(late, writeTimeout)
		err := step(bounded)
		cancel()
		if err != nil {
			return err
		}
	}
}

// next is the step that is due first. Flushes and pages of a sweep take turns, so
// that neither keeps the other waiting for more than one step.
func (c *column) next(now time.Time) (at time.Time, step func(context.Context) error) {
	c.beginSweep(now)
	if c.sweep.running && c.sweep.pageAt.Before(c.flushAt) {
		return c.sweep.pageAt, c.page
	}
	return c.flushAt, c.flush
}

// flush writes the totals that changed since the last one.
func (c *column) flush(ctx context.Context) error {
	defer func() { c.flushAt = time.Now().Add(c.cfg.Interval) }()
	ids := c.changes.take()
	if len(ids) == 0 {
		return nil
	}
	writable := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !c.shape.holds(id) })
	var left []string
	var err error
	if len(writable) > 0 {
		left, err = c.write(ctx, writable)
	}
	switch {
	case errors.Is(err, errTooLarge) && len(ids) > ledger.MaxItems:
		c.changes.abandon() // a sweep writes it in smaller parts
	case err != nil:
		c.changes.settle(ids)
	default:
		c.changes.settle(left)
		c.metrics.flushes.Inc()
		c.metrics.skipped.Add(float64(len(ids) - len(writable)))
		c.succeeded(ctx)
		return nil
	}
	return fmt.Errorf("flush: %w", err)
}

// connect makes sure of a connection and of the table behind it. Behind a new
// connection there may be an older database, and another table has other rows: then
// a sweep is due.
func (c *column) connect(ctx, late context.Context) error {
	if c.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, c.place.conn.Copy())
		if err != nil {
			return err
		}
		c.conn = conn
		if c.state != unknown {
			c.changes.askSweep()
		}
	}
	bounded, cancel := context.WithTimeout(late, connectTimeout)
	defer cancel()
	found, indexed, err := inspect(bounded, c.conn, c.place)
	if err != nil {
		return err
	}
	c.indexed = indexed
	if found == c.shape {
		return nil
	}
	if c.shape != (shape{}) {
		c.sweep.after = nil // an id of another table, perhaps of another type
		c.changes.askSweep()
	}
	c.shape, c.sql = found, newStatements(found, c.place)
	if !indexed {
		c.log.WarnContext(ctx, "no index begins with the id column: every flush reads the whole table", slog.String("id_column", c.place.id))
	}
	return nil
}

func (c *column) disconnect(late context.Context) {
	if c.conn == nil {
		return
	}
	bounded, cancel := context.WithTimeout(late, time.Second)
	defer cancel()
	_ = c.conn.Close(bounded) // every transaction has ended or is given up
	select {
	case <-c.conn.PgConn().CleanupDone():
	case <-late.Done():
	}
	c.conn = nil
}

// failed counts a failure, and logs it when it is of another kind than the last. A
// database that reported one is left: the right one may be elsewhere by now.
func (c *column) failed(ctx, late context.Context, err error) {
	c.metrics.errors.Inc()
	now := stateOf(err)
	if now != unreadable {
		c.disconnect(late)
	}
	if now != c.state {
		c.state = now
		c.log.WarnContext(ctx, "counts are not mirrored; trying again until they are", slog.String("state", string(now)), slog.Any("error", err))
	}
}

func (c *column) succeeded(ctx context.Context) {
	c.retry = retryLeast
	if c.state != working {
		c.state = working
		c.log.InfoContext(ctx, "counts are mirrored", slog.String("id_type", c.shape.idType()))
	}
}

func stateOf(err error) state {
	code := codeOf(err)
	_, ledgerFailed := errors.AsType[ledgerError](err)
	switch {
	case ledgerFailed:
		return unreadable
	case errors.Is(err, like.ErrInvalid), strings.HasPrefix(code, "42"), strings.HasPrefix(code, "3"), strings.HasPrefix(code, "28"),
		aboutData(err):
		return unfit // no such table, database or user, no right to it, or nothing may be written to it
	}
	return unreachable
}

package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// writeTimeout bounds one transaction, and idleLimit the time that the database lets
// it rest, so that a node that hangs or is cut off does not keep the others waiting.
const (
	writeTimeout = time.Minute
	idleLimit    = 20 * time.Second
)

// lockSQL makes the transaction the only mirror of the column until it ends. With an
// index its rows are then looked up one by one ($3 is off): they must be visited
// anyway, and a hash of the whole table would cost by the size of the table instead of
// by the number of changes.
const lockSQL = `
SELECT set_config('idle_in_transaction_session_timeout', $2, true), set_config('jit', 'off', true),
	set_config('enable_hashjoin', $3, true), set_config('enable_mergejoin', $3, true), pg_advisory_xact_lock($1)`

// writeSQL writes the counts $2 to the rows with the ids $1, where they differ and
// no other transaction has the row, and returns how many rows that were and the ids
// of those which another transaction has. A row that the lock step got in a newer
// version than differing shows is written just as well: the column is ours alone.
const writeSQL = `
WITH wanted AS (
	SELECT * FROM unnest($1::text[]::%[3]s[], $2::bigint[]) AS w (id, n)
), differing AS MATERIALIZED (
	SELECT w.id, w.n FROM wanted w JOIN %[1]s t ON t.%[2]s = w.id WHERE t.%[4]s IS DISTINCT FROM w.n
), free AS MATERIALIZED (
	SELECT d.id, d.n FROM differing d JOIN %[1]s t ON t.%[2]s = d.id FOR NO KEY UPDATE OF t SKIP LOCKED
), written AS (
	UPDATE %[1]s t SET %[4]s = f.n FROM free f WHERE t.%[2]s = f.id RETURNING 1
)
SELECT (SELECT count(*) FROM written), ARRAY(SELECT id::text FROM differing EXCEPT SELECT id::text FROM free)`

// pageSQL reads a page of the column by id, the first or the one behind $1.
const pageSQL = `SELECT t.%[2]s::text, t.%[4]s::bigint FROM %[1]s t WHERE %[5]s ORDER BY t.%[2]s LIMIT %[6]d`

// statements are the texts for one shape.
type statements struct {
	lock               int64
	write, first, next string
}

func newStatements(s shape, p place) statements {
	table, id, count := pgx.Identifier{s.schema, s.table}.Sanitize(), pgx.Identifier{p.id}.Sanitize(), pgx.Identifier{p.count}.Sanitize()
	page := func(where string) string {
		return fmt.Sprintf(pageSQL, table, id, s.idType(), count, where, ledger.MaxItems)
	}
	return statements{
		lock:  s.lock(p.count),
		write: fmt.Sprintf(writeSQL, table, id, s.idType(), count),
		first: page("t." + id + " IS NOT NULL"),
		next:  page("t." + id + " > $1::text::" + s.idType()),
	}
}

// ledgerError is a failure to read totals, which says nothing about the database.
type ledgerError struct{ error }

func (e ledgerError) Unwrap() error { return e.error }

// errTooLarge is the failure of a statement that the database did not finish in time.
var errTooLarge = errors.New("the database did not write the counts in time")

// writeOnce makes the rows of ids equal to the totals, in one transaction and one
// statement that writes. It returns the ids whose rows another transaction has.
func (c *column) writeOnce(ctx context.Context, ids []string) (held []string, err error) {
	var rows int64
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	err = pgx.BeginTxFunc(ctx, c.conn, options, func(tx pgx.Tx) error {
		// The totals must be read under the lock, see the package comment.
		if err := c.lock(ctx, tx); err != nil {
			return err
		}
		counts, err := c.counts(ctx, ids)
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, c.sql.write, ids, counts).Scan(&rows, &held); err != nil {
			if ctx.Err() != nil || codeOf(err) == queryCanceled {
				err = errors.Join(errTooLarge, err)
			}
			return fmt.Errorf("write %d counts: %w", len(ids), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.metrics.written.Add(float64(rows))
	return held, nil
}

func (c *column) lock(ctx context.Context, tx pgx.Tx) error {
	bulkJoins := "on"
	if c.indexed {
		bulkJoins = "off"
	}
	if _, err := tx.Exec(ctx, lockSQL, c.sql.lock, fmt.Sprint(idleLimit.Milliseconds()), bulkJoins); err != nil {
		return fmt.Errorf("lock the column: %w", err)
	}
	return nil
}

const queryCanceled = "57014"

// codeOf is the SQLSTATE of an error that the database reported, or empty. The ledger
// may have a database of its own, which is another one.
func codeOf(err error) string {
	if _, ok := errors.AsType[ledgerError](err); ok {
		return ""
	}
	if reported, ok := errors.AsType[*pgconn.PgError](err); ok {
		return reported.Code
	}
	return ""
}

// counts reads the totals of ids, in their order, as the column can hold them.
func (c *column) counts(ctx context.Context, ids []string) ([]int64, error) {
	counts := make([]int64, 0, len(ids))
	items := make([]like.Item, 0, ledger.MaxItems)
	for chunk := range slices.Chunk(ids, ledger.MaxItems) {
		items = items[:0]
		for _, id := range chunk {
			items = append(items, like.Item{Collection: c.collection, ID: id})
		}
		totals, err := c.reader.Totals(ctx, items)
		if err != nil {
			return nil, ledgerError{fmt.Errorf("read totals: %w", err)}
		}
		for _, t := range totals {
			counts = append(counts, c.shape.shown(t.Count))
		}
	}
	return counts, nil
}

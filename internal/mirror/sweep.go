package mirror

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/internal/like"
)

// sweep is where the reading of a whole column stands.
type sweep struct {
	running bool
	after   *string // last id that was compared, nil at the start
	pageAt  time.Time
	nextAt  time.Time // of the next one without a reason, zero = never
}

// beginSweep begins a sweep when one is asked for or due. One under way is finished
// first: what it has passed may be wrong again, and what it has not must not wait.
func (c *column) beginSweep(now time.Time) {
	due := !c.sweep.nextAt.IsZero() && now.After(c.sweep.nextAt)
	if !c.sweep.running && c.changes.beginSweep(due) {
		c.sweep = sweep{running: true, pageAt: now}
		c.metrics.sweeping.Set(1)
	}
}

// page compares the next rows with their totals, writes what differs, and pauses as
// long as the share of time demands.
func (c *column) page(ctx context.Context) error {
	began := time.Now()
	rows, err := c.readPage(ctx)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	if len(rows) == 0 {
		c.endSweep()
		c.succeeded(ctx)
		return nil
	}
	if err := c.compare(ctx, rows); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	c.metrics.swept.Add(float64(len(rows)))
	c.sweep.after = &rows[len(rows)-1].ID
	c.succeeded(ctx)
	worked := time.Since(began)
	c.sweep.pageAt = time.Now().Add(time.Duration(float64(worked) * (1/c.cfg.Share - 1)))
	return nil
}

func (c *column) endSweep() {
	c.changes.endSweep()
	c.sweep = sweep{}
	if c.cfg.Sweep > 0 {
		c.sweep.nextAt = time.Now().Add(c.cfg.Sweep)
	}
	c.metrics.sweeping.Set(0)
	c.metrics.sweptAt.SetToCurrentTime()
}

// row is one row of the mirrored table; a Count of NULL is nil.
type row struct {
	ID    string
	Count *int64
}

func (c *column) readPage(ctx context.Context) ([]row, error) {
	query, args := c.sql.first, []any(nil)
	if c.sweep.after != nil {
		query, args = c.sql.next, []any{*c.sweep.after}
	}
	found, err := c.conn.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read a page of the table: %w", err)
	}
	rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
	if err != nil {
		return nil, fmt.Errorf("read a page of the table: %w", err)
	}
	return rows, nil
}

// compare writes the rows that differ from their totals. Rows whose id no item can
// have are left alone. That the totals are read outside the lock is harmless: a row
// is not made wrong by being found right, and what is found wrong is read again.
func (c *column) compare(ctx context.Context, rows []row) error {
	var ids []string
	var shown []*int64
	for _, r := range rows {
		if (like.Item{Collection: c.collection, ID: r.ID}).Validate() == nil && c.shape.holds(r.ID) {
			ids, shown = append(ids, r.ID), append(shown, r.Count)
		}
	}
	counts, err := c.counts(ctx, ids)
	if err != nil {
		return err
	}
	differing := ids[:0]
	for k, id := range ids {
		if shown[k] == nil || *shown[k] != counts[k] {
			differing = append(differing, id)
		}
	}
	if len(differing) == 0 {
		return nil
	}
	left, err := c.write(ctx, differing)
	for _, id := range left {
		c.changes.add(id, time.Now())
	}
	return err
}

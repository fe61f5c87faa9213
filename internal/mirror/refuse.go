package mirror

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// halvingLimit is how long one step looks for rows that refuse, before it leaves the
// rest to a later one.
const halvingLimit = 10 * time.Second

// write makes the rows of ids equal to the totals, normally in one transaction. Rows
// that refuse are left out. It returns the ids that are still to be written: those
// whose rows another transaction has, and those that it did not come to. Ids must be
// such that a row can have them.
func (c *column) write(ctx context.Context, ids []string) (left []string, err error) {
	left, err = c.writeOnce(ctx, ids)
	if !aboutData(err) {
		return left, err
	}
	if _, err := c.writeOnce(ctx, []string{}); err != nil {
		return nil, err // no row is to blame for what fails without any
	}
	return c.writeHalves(ctx, ids, err, time.Now().Add(c.halving))
}

// writeHalves writes in two parts what was refused as one, down to the single rows that
// refuse. Its first part is written however late it is, so that each call gets on.
func (c *column) writeHalves(ctx context.Context, ids []string, refusal error, until time.Time) (left []string, err error) {
	if len(ids) == 1 {
		c.leaveOut(ctx, ids[0], refusal)
		return nil, nil
	}
	half := len(ids) / 2
	for k, part := range [][]string{ids[:half], ids[half:]} {
		if k > 0 && time.Now().After(until) {
			return append(left, part...), nil
		}
		more, err := c.writeOnce(ctx, part)
		if aboutData(err) {
			more, err = c.writeHalves(ctx, part, err, until)
		}
		if err != nil {
			return nil, err
		}
		left = append(left, more...)
	}
	return left, nil
}

// leaveOut gives up a row until a sweep or its next change tries it again, and logs the
// first of each cause. A message is no cause: it may name the row.
func (c *column) leaveOut(ctx context.Context, id string, refusal error) {
	c.metrics.refused.Inc()
	reported, _ := errors.AsType[*pgconn.PgError](refusal)
	cause := [2]string{reported.Code, reported.ConstraintName}
	if _, ok := c.refusals[cause]; ok || len(c.refusals) == refusalsLogged {
		return
	}
	c.refusals[cause] = struct{}{}
	c.log.WarnContext(ctx, "a row refuses its count and is left out until the next sweep or its next change; others of this cause are only counted",
		slog.String("id", id), slog.Any("error", refusal))
}

// refusalsLogged bounds the causes, whose names a trigger can make up.
const refusalsLogged = 100

// dataClasses are the SQLSTATE classes, and the one code, with which a server may refuse
// one row and take another: data exception, integrity constraint, check option, what a
// trigger raises, and a row security policy.
var dataClasses = []string{"22", "23", "44", "P0", "42501"}

func aboutData(err error) bool {
	code := codeOf(err)
	return slices.ContainsFunc(dataClasses, func(class string) bool { return strings.HasPrefix(code, class) })
}

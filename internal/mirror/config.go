package mirror

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Config says what is mirrored where, and how often.
type Config struct {
	// Interval is the pause between two flushes of changed totals.
	Interval time.Duration
	// Sweep is the time between the end of a sweep and the next one; 0 sweeps only
	// when there is a reason to.
	Sweep time.Duration
	// Share is the part of the time, above 0 and at most 1, that a sweep may work.
	Share float64
	// MaxChanged is how many changed ids of a collection are kept. Beyond it all of
	// them are dropped, and a sweep finds them again.
	MaxChanged int
	// Tables are the columns to write, by collection. Without any the mirror idles.
	Tables map[string]Table
}

// Table is where the totals of one collection go. Names are taken as they are
// written, capitals included; a name with a dot or a quote in it is written as SQL
// quotes it.
type Table struct {
	URL         string // of the database, postgres://…
	Name        string // of the table, with or without a schema: app.posts
	IDColumn    string // whose text is the id of an item, one row for each
	CountColumn string // that the mirror owns
}

// DefaultConfig returns the settings of a mirror without tables.
func DefaultConfig() Config {
	return Config{Interval: 5 * time.Second, Sweep: 24 * time.Hour, Share: 0.2, MaxChanged: 100_000}
}

// Validate reports, as [like.ErrInvalid], why the settings cannot work. It does not
// look at any database.
func (c Config) Validate() error {
	switch {
	case c.Interval <= 0:
		return fmt.Errorf("%w: time between flushes must be above 0", like.ErrInvalid)
	case c.Sweep < 0:
		return fmt.Errorf("%w: time between sweeps is negative", like.ErrInvalid)
	case !(c.Share > 0 && c.Share <= 1):
		return fmt.Errorf("%w: share of a sweep must be above 0 and at most 1", like.ErrInvalid)
	case c.MaxChanged < ledger.MaxItems:
		return fmt.Errorf("%w: at least %d changed ids must be kept", like.ErrInvalid, ledger.MaxItems)
	}
	for _, collection := range slices.Sorted(maps.Keys(c.Tables)) {
		if err := like.ValidateCollection(collection); err != nil {
			return err
		}
		if _, err := c.Tables[collection].parse(); err != nil {
			return fmt.Errorf("collection %s: %w", collection, err)
		}
	}
	return nil
}

// place is a parsed Table.
type place struct {
	conn      *pgx.ConnConfig
	table     pgx.Identifier
	id, count string
}

func (t Table) parse() (p place, err error) {
	if p.conn, err = pgx.ParseConfig(t.URL); err != nil {
		// The cause may show what was taken for no password.
		return p, fmt.Errorf("%w: URL of the database cannot be read; write postgres://user@host:5432/database, "+
			"with signs such as / ? # @ : in a password percent-encoded", like.ErrInvalid)
	}
	if p.table, err = parseName(t.Name, 2); err != nil {
		return p, fmt.Errorf("table: %w", err)
	}
	for _, column := range []struct {
		what, text string
		name       *string
	}{{"id column", t.IDColumn, &p.id}, {"count column", t.CountColumn, &p.count}} {
		parts, err := parseName(column.text, 1)
		if err != nil {
			return p, fmt.Errorf("%s: %w", column.what, err)
		}
		*column.name = parts[0]
	}
	if p.id == p.count {
		return p, fmt.Errorf("%w: id column and count column are both %q", like.ErrInvalid, p.id)
	}
	return p, nil
}

// parseName splits a name at its dots into at most n parts. A part in double quotes
// is read as in SQL.
func parseName(text string, n int) (pgx.Identifier, error) {
	var parts pgx.Identifier
	for rest := text; ; {
		part, after, ok := cutPart(rest)
		if !ok || part == "" || len(parts) == n || strings.ContainsRune(part, 0) {
			return nil, fmt.Errorf("%w: %q is not a name of at most %d parts, such as posts or \"my.posts\"", like.ErrInvalid, text, n)
		}
		parts = append(parts, part)
		if after == "" {
			return parts, nil
		}
		rest = after[1:]
	}
}

// cutPart cuts the first part off; after is empty or begins with a dot.
func cutPart(text string) (part, after string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexByte(text, '.')
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], !strings.Contains(text[:end], `"`)
	}
	for k := 1; k < len(text); k++ {
		switch {
		case text[k] != '"':
		case strings.HasPrefix(text[k:], `""`):
			k++
		default:
			part, after = strings.ReplaceAll(text[1:k], `""`, `"`), text[k+1:]
			return part, after, after == "" || after[0] == '.'
		}
	}
	return "", "", false
}

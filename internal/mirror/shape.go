package mirror

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"likewise/internal/like"
)

// shape is what the catalog says about a table and its two columns.
type shape struct {
	oid       uint32 // of the table; another one is another table
	schema    string
	table     string
	id, count uint32 // types of the columns
	asciiOnly bool   // whether the database cannot hold every text
}

// integers are the integer types, and the largest number that each holds.
var integers = map[uint32]struct {
	name string
	bits int
	most int64
}{
	pgtype.Int2OID: {"smallint", 16, math.MaxInt16},
	pgtype.Int4OID: {"integer", 32, math.MaxInt32},
	pgtype.Int8OID: {"bigint", 64, math.MaxInt64},
}

// texts are the other types of which two values are equal exactly if their texts
// are. Of character(n) that holds for texts that do not end in a space.
var texts = map[uint32]string{
	pgtype.UUIDOID: "uuid", pgtype.TextOID: "text", pgtype.VarcharOID: "varchar", pgtype.BPCharOID: "bpchar",
}

// idType is the name of the id column's type.
func (s *shape) idType() string {
	if integer, ok := integers[s.id]; ok {
		return integer.name
	}
	return texts[s.id]
}

// holds reports whether some row can have the id: it is exactly the text of a value
// of the id column. 007 is no bigint's and takes no row from 7.
func (s *shape) holds(id string) bool {
	if integer, ok := integers[s.id]; ok {
		n, err := strconv.ParseInt(id, 10, integer.bits)
		return err == nil && strconv.FormatInt(n, 10) == id
	}
	switch {
	case s.id == pgtype.UUIDOID:
		return isUUID(id)
	case s.id == pgtype.BPCharOID && strings.HasSuffix(id, " "):
		return false
	}
	return !s.asciiOnly || isASCII(id)
}

// isUUID reports whether id is a UUID as PostgreSQL writes it.
func isUUID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for k := range len(id) {
		switch c := id[k]; k {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > 0x7f }) < 0
}

// shown is the count as the count column can hold it.
func (s *shape) shown(count int64) int64 { return min(count, integers[s.count].most) }

// lock is the key of the advisory lock on the count column, which is the same
// however the table was named in the settings. Advisory locks are the database's own.
func (s *shape) lock(column string) int64 {
	h := fnv.New64a()
	for _, part := range []string{"likewise mirror", s.schema, s.table, column} {
		_, _ = h.Write([]byte(part)) // cannot fail
		_, _ = h.Write([]byte{0})
	}
	return int64(h.Sum64())
}

const tableSQL = `
SELECT c.oid, n.nspname, c.relname, c.relkind IN ('r', 'p'), pg_catalog.current_setting('server_encoding') <> 'UTF8'
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass($1)`

// A domain counts as the type that it is made of. An index helps when the column
// comes first in it and it has all rows.
const columnSQL = `
SELECT b.oid, pg_catalog.format_type(a.atttypid, a.atttypmod), coalesce(l.collisdeterministic, true), a.attgenerated <> '',
	EXISTS (SELECT FROM pg_catalog.pg_index i
		WHERE i.indrelid = a.attrelid AND i.indisvalid AND i.indpred IS NULL AND i.indkey[0] = a.attnum)
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
WHERE a.attrelid = $1::oid AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped`

// inspect looks a place up. What does not fit is like.ErrInvalid with a sentence
// for the operator. indexed reports whether an index finds a row by its id.
func inspect(ctx context.Context, conn *pgx.Conn, p place) (s shape, indexed bool, err error) {
	var isTable bool
	name := p.table.Sanitize()
	err = conn.QueryRow(ctx, tableSQL, name).Scan(&s.oid, &s.schema, &s.table, &isTable, &s.asciiOnly)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s, false, fmt.Errorf("%w: user %s sees no table %s in the database %s; names are taken as they are written, capitals included, "+
			"and the user needs USAGE of the schema", like.ErrInvalid, conn.Config().User, name, conn.Config().Database)
	case err != nil:
		return s, false, fmt.Errorf("look up table %s: %w", name, err)
	case !isTable:
		return s, false, fmt.Errorf("%w: %s is not a table", like.ErrInvalid, name)
	}
	var kind string
	var deterministic, generated bool
	if err := findColumn(ctx, conn, name, s.oid, p.id, &s.id, &kind, &deterministic, &generated, &indexed); err != nil {
		return s, false, err
	}
	if s.idType() == "" || !deterministic {
		return s, false, fmt.Errorf("%w: column %q of %s is %s, whose values cannot be matched with ids byte for byte; "+
			"use one of type smallint, integer, bigint, uuid, text, varchar or char", like.ErrInvalid, p.id, name, kind)
	}
	var ignored bool
	if err := findColumn(ctx, conn, name, s.oid, p.count, &s.count, &kind, &ignored, &generated, &ignored); err != nil {
		return s, false, err
	}
	if integers[s.count].bits == 0 || generated {
		return s, false, fmt.Errorf("%w: column %q of %s is %s, which cannot take a count; use an ordinary column of type bigint",
			like.ErrInvalid, p.count, name, kind)
	}
	return s, indexed, nil
}

func findColumn(ctx context.Context, conn *pgx.Conn, table string, oid uint32, column string, into ...any) error {
	err := conn.QueryRow(ctx, columnSQL, oid, column).Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: table %s has no column %q; names are taken as they are written, capitals included", like.ErrInvalid, table, column)
	}
	if err != nil {
		return fmt.Errorf("look up column %q of %s: %w", column, table, err)
	}
	return nil
}

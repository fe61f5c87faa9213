package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"likewise/internal/like"
)

// Mirror says which totals are written into tables of the application, and how often.
type Mirror struct {
	Tables   MirrorTables  `key:"tables" doc:"columns of the application's PostgreSQL tables that are kept equal to the totals, by collection: {posts: {url: postgres://likewise@db/app, table: public.posts, id_column: id, count_column: like_count}}. The count columns belong to likewise; empty = none"`
	Interval time.Duration `key:"interval" default:"5s" min:"100ms" max:"1h" doc:"time between two writes of what changed, each one statement for a table"`
	Sweep    time.Duration `key:"sweep" default:"24h" min:"0s" max:"8760h" doc:"time between two comparisons of whole columns with the totals, beside those after a start or a loss; 0s = only those"`
	Share    float64       `key:"share" default:"0.2" min:"0.01" max:"1" doc:"part of the time that such a comparison may work; it pauses for the rest"`
}

// MirrorTable is the column for the totals of one collection.
type MirrorTable struct {
	URL                          URL
	Table, IDColumn, CountColumn string
}

// MirrorTables are columns by collection. In text they are a YAML mapping in one line.
type MirrorTables map[string]MirrorTable

// tables is the kind of a setting of this type.
const tables = "tables"

const tablesExample = `{posts: {url: postgres://likewise@db/app, table: public.posts, id_column: id, count_column: like_count}}`

// fieldOrder are the fields of a table as they are printed.
var fieldOrder = []string{"url", "table", "id_column", "count_column"}

// field returns where a field of a table is kept, nil when there is none of the name.
func (t *MirrorTable) field(name string) *string {
	switch name {
	case "url":
		return (*string)(&t.URL)
	case "table":
		return &t.Table
	case "id_column":
		return &t.IDColumn
	case "count_column":
		return &t.CountColumn
	}
	return nil
}

// parseTables reads what text writes.
func parseTables(text string) (MirrorTables, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var document yaml.Node
	if yaml.Unmarshal([]byte(text), &document) != nil || len(document.Content) != 1 {
		return nil, errors.New("must be written like " + tablesExample) // the cause may show a password
	}
	return readTables(document.Content[0], func(_ *yaml.Node, format string, args ...any) error {
		return fmt.Errorf(format, args...)
	})
}

// loadTables applies the tables of a YAML mapping.
func (e *Effective) loadTables(path string, s *setting, node *yaml.Node) error {
	read, err := readTables(node, func(at *yaml.Node, format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s: "+format, append([]any{path, at.Line, s.key}, args...)...)
	})
	if err != nil {
		return err
	}
	*s.field(&e.Config).(*MirrorTables) = read
	e.source[s.key] = fmt.Sprintf("%s:%d", path, node.Line)
	return nil
}

// readTables reads a mapping of collections to tables; mistake makes an error at a
// place in it.
func readTables(node *yaml.Node, mistake func(at *yaml.Node, format string, args ...any) error) (MirrorTables, error) {
	if node.Kind != yaml.MappingNode {
		return nil, mistake(node, "must be written like %s", tablesExample)
	}
	var errs []error
	var all MirrorTables
	for pair := range slices.Chunk(node.Content, 2) {
		name, fields := pair[0], pair[1]
		if _, twice := all[name.Value]; twice {
			errs = append(errs, mistake(name, "%s is there twice; keep one", name.Value))
			continue
		}
		if fields.Kind != yaml.MappingNode {
			errs = append(errs, mistake(name, "%s must have %s, each as `name: value`", name.Value, strings.Join(fieldOrder, ", ")))
			continue
		}
		table, err := readTable(name, fields, mistake)
		errs = append(errs, err)
		if all == nil {
			all = MirrorTables{}
		}
		all[name.Value] = table
	}
	return all, errors.Join(errs...)
}

func readTable(name, fields *yaml.Node, mistake func(at *yaml.Node, format string, args ...any) error) (table MirrorTable, err error) {
	var errs []error
	seen := map[string]bool{}
	for pair := range slices.Chunk(fields.Content, 2) {
		key, value := pair[0], pair[1]
		into := table.field(key.Value)
		switch {
		case into == nil:
			errs = append(errs, mistake(key, "%s has an unknown field %q; it must have %s", name.Value, key.Value, strings.Join(fieldOrder, ", ")))
		case seen[key.Value]:
			errs = append(errs, mistake(key, "%s has %s twice; keep one", name.Value, key.Value))
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null" || value.Value == "":
			errs = append(errs, mistake(key, "%s of %s must be a single string", key.Value, name.Value))
		default:
			*into = value.Value
		}
		seen[key.Value] = true
	}
	for _, field := range fieldOrder {
		if !seen[field] {
			errs = append(errs, mistake(name, "%s lacks %s", name.Value, field))
		}
	}
	return table, errors.Join(errs...)
}

// text is the notation that parseTables reads, with URLs as show gives them.
func (m MirrorTables) text(show func(URL) string) string {
	var b strings.Builder
	for i, collection := range slices.Sorted(maps.Keys(m)) {
		t := m[collection]
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: {url: %s, table: %s, id_column: %s, count_column: %s}", collection,
			strconv.Quote(show(t.URL)), strconv.Quote(t.Table), strconv.Quote(t.IDColumn), strconv.Quote(t.CountColumn))
	}
	return "{" + b.String() + "}"
}

// String is m without what may be secret.
func (m MirrorTables) String() string { return m.text(URL.String) }

func (c Config) checkMirror() error {
	var errs []error
	owner := map[MirrorTable]string{}
	for _, collection := range slices.Sorted(maps.Keys(c.Mirror.Tables)) {
		t := c.Mirror.Tables[collection]
		if err := like.ValidateCollection(collection); err != nil {
			errs = append(errs, fmt.Errorf("mirror.tables: %q: %w", collection, err))
		}
		if _, err := t.URL.database(); err != nil {
			errs = append(errs, fmt.Errorf("mirror.tables: url of %s: %q %w", collection, t.URL, err))
		}
		t.IDColumn = ""
		if other, taken := owner[t]; taken {
			errs = append(errs, fmt.Errorf("mirror.tables: %s and %s have one column, %s of %s; give each its own", other, collection, t.CountColumn, t.Table))
		}
		owner[t] = collection
	}
	return errors.Join(errs...)
}

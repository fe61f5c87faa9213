package config

import (
	"reflect"
	"strings"
)

// setting is one row of the table: a leaf field of Config.
type setting struct {
	key, flag, env string
	kind           string // what a value looks like: string, int, duration, …
	def            string
	min, max       string
	oneof          []string
	unit, doc      string
	index          []int // path of the field in Config
}

const envPrefix = "LIKEWISE_"

// settings lists every setting in the order of the struct.
var settings = tableOf(reflect.TypeFor[Config](), "", nil)

func tableOf(t reflect.Type, prefix string, index []int) []setting {
	var rows []setting
	for f := range t.Fields() {
		tag, path := f.Tag, append(index[:len(index):len(index)], f.Index...)
		key := prefix + tag.Get("key")
		kind, leaf := kindOf(f.Type)
		if !leaf {
			rows = append(rows, tableOf(f.Type, key+".", path)...)
			continue
		}
		s := setting{
			key: key, kind: kind, def: tag.Get("default"), min: tag.Get("min"), max: tag.Get("max"),
			unit: tag.Get("unit"), doc: tag.Get("doc"), index: path,
			flag: strings.NewReplacer(".", "-", "_", "-").Replace(key),
			env:  envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_")),
		}
		if words := tag.Get("oneof"); words != "" {
			s.oneof = strings.Split(words, ",")
		}
		rows = append(rows, s)
	}
	return rows
}

// field returns a pointer to the setting's field in c.
func (s *setting) field(c *Config) any {
	return reflect.ValueOf(c).Elem().FieldByIndex(s.index).Addr().Interface()
}

// set parses text into the setting's field of c.
func (s *setting) set(c *Config, text string) error { return parse(s.field(c), text) }

// text is the setting's value in c, in the notation that set reads.
func (s *setting) text(c *Config) string { return format(s.field(c)) }

// lookup finds the setting for which name gives want.
func lookup(want string, name func(*setting) string) *setting {
	for i := range settings {
		if name(&settings[i]) == want {
			return &settings[i]
		}
	}
	return nil
}

// didYouMean ends an error about an unknown name with the nearest known one.
func didYouMean(got string, name func(*setting) string) string {
	best, least := "", min(4, 1+len(got)/3)
	for i := range settings {
		if d := distance(got, name(&settings[i])); d < least {
			best, least = name(&settings[i]), d
		}
	}
	if best == "" {
		return "; docs/config.md lists all"
	}
	return "; did you mean " + best + "?"
}

// distance is the number of bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

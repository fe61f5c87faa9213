package config

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mirrorFile = `
mirror:
  interval: 1s
  tables:
    posts: {url: "postgres://u:hunter2@db/app?sslmode=require", table: app.posts, id_column: id, count_column: like_count}
    comments:
      url: postgres://u:hunter2@db/app?sslmode=require
      table: '"odd ""name"'
      id_column: "the:id"
      count_column: "\u00fc, {x} # \x7f"
`

var mirrorTables = MirrorTables{
	"posts":    {"postgres://u:hunter2@db/app?sslmode=require", "app.posts", "id", "like_count"},
	"comments": {"postgres://u:hunter2@db/app?sslmode=require", `"odd ""name"`, "the:id", "\u00fc, {x} # \x7f"},
}

// TestTablesInEveryPlace gives the same tables in a file, a variable and a flag.
func TestTablesInEveryPlace(t *testing.T) {
	text := mirrorTables.text(func(u URL) string { return string(u) })
	json := `{"posts":{"url":"postgres://u:hunter2@db/app?sslmode=require","table":"app.posts","id_column":"id","count_column":"like_count"}}`
	for name, tt := range map[string]struct {
		file      string
		env, args []string
		want      MirrorTables
	}{
		"file":      {file: mirrorFile, want: mirrorTables},
		"line":      {file: "mirror: {tables: " + text + "}", want: mirrorTables},
		"variable":  {env: []string{"LIKEWISE_MIRROR_TABLES=" + text}, want: mirrorTables},
		"flag":      {args: []string{"--mirror-tables", text}, want: mirrorTables},
		"JSON":      {args: []string{"--mirror-tables=" + json}, want: MirrorTables{"posts": mirrorTables["posts"]}},
		"none":      {file: mirrorFile, args: []string{"--mirror-tables="}},
		"none too":  {file: mirrorFile, args: []string{"--mirror-tables={}"}},
		"none said": {file: "mirror: {tables: {}}"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := load(t, tt.file, tt.env, tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, e.Mirror.Tables); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMistakesInTables(t *testing.T) {
	const good = "url: postgres://u:hunter2@db/app, table: t, id_column: id, count_column: n"
	for _, tt := range []struct {
		name, tables string // of the file, where they begin on line 3
		want         []string
	}{
		{"no mapping", "[hunter2]", []string{"c.yaml:3: mirror.tables: must be written like {posts: {url: "}},
		{"word", "hunter2", []string{"c.yaml:3: mirror.tables: must be written like"}},
		{"null", "null", []string{"c.yaml:3: mirror.tables: must be written like"}},
		{"no fields", "{posts: hunter2}", []string{"c.yaml:3: mirror.tables: posts must have url, table, id_column, count_column"}},
		{"unknown field", "\n    posts: {" + good + ",\n      tabel: t}", []string{`c.yaml:5: mirror.tables: posts has an unknown field "tabel"; it must have url, table`}},
		{"field twice", "{posts: {" + good + ", table: t}}", []string{"c.yaml:3: mirror.tables: posts has table twice"}},
		{"missing", "\n    posts: {table: t}\n    games: {" + good + "}", []string{"c.yaml:4: mirror.tables: posts lacks url", "posts lacks id_column", "posts lacks count_column"}},
		{"empty", `{posts: {` + good + `, id_column: ""}}`, []string{"posts has id_column twice"}},
		{"no text", "{posts: {url: [a], table: {}, id_column: ~, count_column: ''}}", []string{
			"url of posts must be a single string", "table of posts", "id_column of posts", "count_column of posts",
		}},
		{"collection twice", "{posts: {" + good + "}, posts: {" + good + "}}", []string{"c.yaml:3: mirror.tables: posts is there twice"}},
		{"collection", "{Posts: {" + good + "}}", []string{`mirror.tables: "Posts": invalid: collection must match`}},
		{"merge key", "{posts: &a {" + good + "}, games: {<<: *a}}", []string{`games has an unknown field "<<"`}},
		{"alias", "{posts: &a {" + good + "}, games: *a}", []string{"games must have"}},
		{"other database", "{posts: {url: redis://u:hunter2@h, table: t, id_column: i, count_column: n}}", []string{"mirror.tables: url of posts", "redis://u:***@h"}},
		{"keywords", "{posts: {url: host=h password=hunter2, table: t, id_column: i, count_column: n}}", []string{"mirror.tables: url of posts", "keywords such as host"}},
		{"one column", "{posts: {" + good + "}, games: {" + good + "}}", []string{"games and posts have one column, n of t"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tables := strings.TrimLeft(tt.tables, "\n ")
			for _, given := range []struct {
				file string
				args []string
			}{{file: "mirror:\n  interval: 1s\n  tables: " + tt.tables}, {args: []string{"--mirror-tables=" + tables}}} {
				if given.args != nil && tables != tt.tables {
					continue // is of several lines
				}
				_, err := load(t, given.file, nil, given.args)
				if err == nil {
					t.Fatal("accepted")
				}
				for _, part := range tt.want {
					if given.args != nil {
						part = strings.TrimPrefix(part, "c.yaml:3: mirror.tables: ")
					}
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error lacks %q:\n%v", part, err)
					}
				}
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("the error shows a password: %v", err)
				}
			}
		})
	}
	if _, err := load(t, "", nil, []string{"--mirror-tables={posts: {url: postgres://u:hunter2@db"}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a flag that is cut off: %v", err)
	}
}

func TestTablesAreMasked(t *testing.T) {
	e, err := load(t, mirrorFile, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := e.Print(&out); err != nil {
		t.Fatal(err)
	}
	const want = `  tables: {comments: {url: "postgres://u:***@db/app?***", table: "\"odd \"\"name\"", id_column: "the:id", count_column: "ü, {x} # \x7f"}, ` +
		`posts: {url: "postgres://u:***@db/app?***", table: "app.posts", id_column: "id", count_column: "like_count"}} # `
	if !strings.Contains(out.String(), want) {
		t.Errorf("no line %s in:\n%s", want, out.String())
	}
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		fmt.Fprintf(&out, form+form+"\n", e.Config, e.Mirror.Tables)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("starting", "config", e)
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("a password is shown:\n%s", out.String())
	}
}

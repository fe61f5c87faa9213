package mirror

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/ledger/memory"
)

// TestIDsOfEveryType follows ids that a column can hold and ids that only look like
// it, by the feed alone and by a sweep alone.
func TestIDsOfEveryType(t *testing.T) {
	a := newApplication(t, "CREATE DOMAIN positive AS bigint CHECK (VALUE > 0)")
	const uuid = "0b1f2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
	for _, tt := range []struct {
		kind         string
		rows, others []string // ids with a row; ids that must touch no row
		skipped      int
	}{
		{"smallint", []string{"1", "-32768"}, []string{"01", "32768", "x"}, 3},
		{"integer", []string{"0", "2147483647"}, []string{"2147483648", "00", "-0", "+0", "0x0", " 0"}, 6},
		{"bigint", []string{"1", "9223372036854775807"}, []string{"01", "1.0", "1e0", "1_0", "9223372036854775808", "'); DROP TABLE posts; --", "٣", "77"}, 7},
		{"positive", []string{"5"}, []string{"05"}, 1},
		{"uuid", []string{uuid}, []string{strings.ToUpper(uuid), strings.ReplaceAll(uuid, "-", ""), "{" + uuid + "}", "x"}, 4},
		{"text", []string{"a", "A", "ü", " a", `\`, `"`, "{a,b}", "NULL", "日本", "a'b"}, []string{"u\u0308", "null"}, 0},
		{"varchar(5)", []string{"abcde"}, []string{"abcdef", "ABCDE"}, 0},
		{"char(5)", []string{"ab"}, []string{"ab ", "ab   "}, 2},
	} {
		for _, how := range []string{"feed", "sweep"} {
			t.Run(tt.kind+" by "+how, func(t *testing.T) {
				a.exec("DROP TABLE IF EXISTS posts")
				a.exec("CREATE TABLE posts (id " + tt.kind + " PRIMARY KEY, like_count bigint)")
				l, want := newLedger(t, memory.Config{}), map[string]int64{}
				for k, id := range tt.rows {
					a.exec("INSERT INTO posts VALUES ($1::text::"+tt.kind+")", id)
					want[id] = int64(k + 1)
				}
				fill := func() {
					for _, id := range tt.others {
						likes(t, l, id, 20)
					}
					for id, n := range want {
						likes(t, l, id, int(n))
					}
				}
				if how == "sweep" {
					fill()
				}
				x := run(t, l, l, fast(a.table()))
				x.swept()
				skipped := 0
				if how == "feed" {
					a.become(zeros(want)) // the sweep is over, and what follows is the feed's
					fill()
					skipped = tt.skipped
				}
				a.become(want)
				eventually(t, "all ids that no row can have are counted", func() bool {
					return value(x.posts().metrics.skipped) >= float64(skipped)
				})
				x.end()
				if diff := cmp.Diff(want, a.counts("posts", "id", "like_count")); diff != "" {
					t.Errorf("after the end (-want +got):\n%s", diff)
				}
				if got := value(x.posts().metrics.errors); got != 0 {
					t.Errorf("%v errors: %s", got, x.log)
				}
			})
		}
	}
}

func zeros(of map[string]int64) map[string]int64 {
	z := map[string]int64{}
	for id := range of {
		z[id] = 0
	}
	return z
}

// TestNames mirrors into tables whose names need care.
func TestNames(t *testing.T) {
	a := newApplication(t)
	for _, tt := range []struct {
		create, sql string
		table       Table
	}{
		{
			`CREATE TABLE "weird ""name" ("the ""id" bigint PRIMARY KEY, "Like Count; --" int)`, `"weird ""name"`,
			Table{Name: `"weird ""name"`, IDColumn: `"the ""id"`, CountColumn: "Like Count; --"},
		},
		{`CREATE TABLE "Post" ("ID" bigint PRIMARY KEY, "n" int)`, `"Post"`, Table{Name: "Post", IDColumn: "ID", CountColumn: "n"}},
		{`CREATE SCHEMA app CREATE TABLE posts (id bigint PRIMARY KEY, w int)`, "app.posts", Table{Name: "app.posts", IDColumn: "id", CountColumn: "w"}},
		{`CREATE TABLE "a.b" (n bigint PRIMARY KEY, "t.id" int)`, `"a.b"`, Table{Name: `public."a.b"`, IDColumn: "n", CountColumn: `"t.id"`}},
		{
			`CREATE TABLE parted (id bigint, day int, c int, PRIMARY KEY (id, day)) PARTITION BY LIST (day);
			CREATE TABLE monday PARTITION OF parted FOR VALUES IN (1); CREATE TABLE tuesday PARTITION OF parted DEFAULT`,
			"parted",
			Table{Name: "parted", IDColumn: "id", CountColumn: "c"},
		},
	} {
		t.Run(tt.sql, func(t *testing.T) {
			a.exec(tt.create)
			p, err := tt.table.parse()
			if err != nil {
				t.Fatal(err)
			}
			id, count := sanitize(p.id), sanitize(p.count)
			if tt.sql == "parted" {
				a.exec("INSERT INTO parted VALUES (1, 1), (2, 2)")
			} else {
				a.exec("INSERT INTO " + tt.sql + " (" + id + ") VALUES (1), (2)")
			}
			l := newLedger(t, memory.Config{})
			likes(t, l, "1", 1)
			tt.table.URL = a.url
			x := run(t, l, l, fast(tt.table))
			x.swept()
			likes(t, l, "2", 2)
			eventually(t, "both rows are right", func() bool {
				got := a.counts(tt.sql, id, count)
				return got["1"] == 1 && got["2"] == 2
			})
			if x.said("level=WARN") != 0 {
				t.Error(x.log)
			}
		})
	}
}

func TestParseName(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string // parts joined by |, empty when refused
	}{
		{"posts", 1, "posts"},
		{"app.posts", 2, "app|posts"},
		{"app.posts", 1, ""},
		{"a.b.c", 2, ""},
		{`"a.b"."c""d"`, 2, `a.b|c"d`},
		{`"a"b`, 2, ""},
		{`a"b`, 2, ""},
		{`"a`, 2, ""},
		{`""`, 2, ""},
		{`"`, 2, ""},
		{`""""`, 2, `"`},
		{"", 2, ""},
		{".", 2, ""},
		{"a.", 2, ""},
		{".a", 2, ""},
		{"a\x00b", 2, ""},
		{"two words", 2, "two words"},
	} {
		got, err := parseName(tt.text, tt.n)
		if strings.Join(got, "|") != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q in %d: %q, %v; want %q", tt.text, tt.n, got, err, tt.want)
		}
	}
}

// TestSmallCounts shows what a column can hold where a total is beyond it.
func TestSmallCounts(t *testing.T) {
	a := newApplication(t)
	for kind, want := range map[string]int64{"smallint": 32767, "integer": 2147483647, "bigint": 5_000_000_000} {
		t.Run(kind, func(t *testing.T) {
			a.exec("DROP TABLE IF EXISTS posts")
			a.exec("CREATE TABLE posts (id text PRIMARY KEY, like_count " + kind + ")")
			a.exec("INSERT INTO posts VALUES ('huge'), ('one')")
			l := newLedger(t, memory.Config{})
			l.Skew(item("huge"), 5_000_000_000)
			likes(t, l, "one", 1)
			x := run(t, l, l, fast(a.table()))
			a.become(map[string]int64{"huge": want, "one": 1})
			x.end()
		})
	}
}

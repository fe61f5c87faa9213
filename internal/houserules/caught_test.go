package houserules

import (
	"go/token"
	"strings"
	"testing"
)

// TestRulesCatch shows each rule red once, and beside it what it must let pass.
func TestRulesCatch(t *testing.T) {
	const long = "package a\n\nfunc f() {\n"
	for _, tt := range []struct {
		rule, name, source string
		want               string // part of the finding; "" = none
	}{
		{"layers", "internal/like/a.go", "package like\nimport _ \"likewise/internal/ledger\"", "may not import internal/ledger"},
		{"layers", "internal/ledger/a.go", "package ledger\nimport _ \"likewise/internal/like\"", ""},
		{"layers", "internal/counts/a.go", "package counts\nimport _ \"likewise/internal/ledger/pebble\"", "may not import internal/ledger/pebble"},
		{"layers", "internal/server/a.go", "package server\nimport _ \"likewise/internal/ledger/pebble\"", ""},
		{"layers", "internal/counts/a_test.go", "package counts\nimport _ \"likewise/internal/ledger/memory\"", ""},
		{"layers", "internal/counts/a.go", "package counts\nimport _ \"likewise/internal/ledger/memory\"", "may not import internal/ledger/memory"},
		{"layers", "internal/new/a.go", "package new\nimport _ \"likewise/internal/like\"", "add its row"},
		{"layers", "internal/like/a.go", "package like\nimport _ \"github.com/x/y\"", "keeps to the standard library"},
		{"layers", "internal/counts/a.go", "package counts\nimport _ \"github.com/cockroachdb/pebble/v2\"", "belongs to internal/ledger/pebble"},
		{"layers", "internal/ledger/pebble/a.go", "package pebble\nimport _ \"github.com/cockroachdb/pebble/v2/vfs\"", ""},
		{"layers", "internal/server/a.go", "package server\nimport _ \"github.com/spf13/cobra\"", "belongs to cmd"},
		{"layers", "cmd/likewise/a.go", "package main\nimport _ \"github.com/spf13/cobra\"", ""},

		{"package names", "internal/util/a.go", "package util", "says nothing"},
		{"package names", "internal/sync/a.go", "package sync", "standard library"},
		{"package names", "internal/a/a.go", "package b", "give both one name"},
		{"package names", "internal/a/a_test.go", "package a_test", ""},
		{"package comments", "internal/a/a.go", "package a", "no package comment"},
		{"package comments", "internal/a/a.go", "// Package a is.\npackage a", ""},

		{"exported names have comments", "a/a.go", "package a\nfunc F() {}", "F has no comment"},
		{"exported names have comments", "a/a.go", "package a\ntype T int\n// M is.\nfunc (T) M() {}", "T has no comment"},
		{"exported names have comments", "a/a.go", "package a\n// T is.\ntype T int\nfunc (*T) M() {}", "M has no comment"},
		{"exported names have comments", "a/a.go", "package a\nconst C = 1", "C has no comment"},
		{"exported names have comments", "a/a.go", "package a\n// All.\nconst (\nC = 1\nD = 2\n)\ntype t int\nfunc (t) M() {}\nvar V = 1 // is one", ""},

		{"no init", "a/a.go", "package a\nfunc init() {}", "func init"},
		{"no init", "a/a.go", "package a\ntype t int\nfunc (t) init() {}", ""},
		{"goroutines have owners", "a/a.go", "package a\nfunc f() { go f() }", "1 go statements where 0"},
		{"goroutines have owners", "a/a_test.go", "package a\nfunc f() { go f() }", ""},
		{"goroutines have owners", "test/harness/a.go", "package harness", "lower the number"},

		{"tests do not sleep", "a/a_test.go", "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }", "a test that sleeps"},
		{"tests do not sleep", "a/a_test.go", "package a\nimport (\"time\"; _ \"testing/synctest\")\nfunc f() { time.Sleep(1) }", ""},
		{"tests do not sleep", "a/a_test.go", "package a\nfunc f() { <-time.After(1) }", "a test that sleeps"},
		{"tests do not sleep", "test/a/a.go", "package a\nfunc f() { select { case <-c: <-time.After(1) } }", "a test that sleeps"},
		{"tests do not sleep", "a/a_test.go", "package a\nfunc f() { select { case <-c: case <-time.After(1): } }", ""},
		{"tests do not sleep", "a/a_test.go", "package a\nfunc bubble() { synctest.Test(nil, nil) }\nfunc f() { bubble(); time.Sleep(1) }", ""},
		{"tests do not sleep", "test/crash/crash_test.go", "package crash\nfunc TestKillsUnderLoad() { time.Sleep(1) }", ""},
		{"tests do not sleep", "test/crash/crash_test.go", "package crash\nfunc TestKillsUnderLoad() {}", "does not sleep any more"},
		{"log with slog", "internal/a/a.go", "package a\nimport \"log\"\nvar _ = log.Fatal", "*slog.Logger"},
		{"log with slog", "internal/a/a.go", "package a\nimport \"fmt\"\nfunc f() { fmt.Println() }", "fmt.Println"},
		{"log with slog", "internal/a/a.go", "package a\nimport \"fmt\"\nfunc f() { fmt.Fprintln(nil) }", ""},
		{"contexts come from callers", "internal/a/a.go", "package a\nimport \"context\"\nvar _ = context.Background()", "cannot be cancelled"},
		{"contexts come from callers", "cmd/likewise/a.go", "package main\nimport \"context\"\nvar _ = context.Background()", ""},

		{"sizes", "a/a.go", "package a\n" + strings.Repeat("\n", 800), "801 lines"},
		{"sizes", "a/a.go", long + strings.Repeat("\n", 99) + "}", "f has 101 lines"},
		{"sizes", "a/a.go", long + strings.Repeat("\n", 98) + "}", ""},
		{"open ends have a number", "a/a.go", "package a\n// TODO: more", "without an issue"},
		{"open ends have a number", "a/a.go", "package a\n// TODO(#12): more\nvar s = \"TODO\"", ""},
	} {
		f, err := parse(token.NewFileSet(), tt.name, []byte(tt.source))
		if err != nil {
			t.Fatalf("%s: %v", tt.source, err)
		}
		var found []string
		for _, r := range rules {
			if r.name == tt.rule {
				found = r.check([]file{f})
			}
		}
		text := strings.Join(found, "\n")
		if tt.want == "" && text != "" || tt.want != "" && !strings.Contains(text, tt.want) {
			t.Errorf("%s on %.80q in %s:\ngot  %s\nwant %s", tt.rule, tt.source, tt.name, text, tt.want)
		}
	}
}

func TestEveryRuleHasAName(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules {
		if r.name == "" || seen[r.name] {
			t.Errorf("rule %q: give each rule a name of its own", r.name)
		}
		seen[r.name] = true
	}
}

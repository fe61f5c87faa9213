package houserules

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

var rules = []rule{
	{"layers", checkLayers},
	{"package names", checkPackageNames},
	{"package comments", checkPackageComments},
	{"exported names have comments", checkExportedComments},
	{"no init", checkInit},
	{"goroutines have owners", checkGoStatements},
	{"tests do not sleep", checkSleep},
	{"log with slog", checkPrinting},
	{"contexts come from callers", checkContexts},
	{"sizes", checkSizes},
	{"open ends have a number", checkOpenEnds},
}

var (
	emptyNames    = []string{"base", "common", "helper", "helpers", "misc", "shared", "util", "utils"}
	standardNames = []string{"bytes", "context", "errors", "fs", "hash", "heap", "http", "io", "json", "list", "log", "math", "net", "os", "rand", "slices", "sort", "strings", "sync", "time"}
)

func checkPackageNames(files []file) []string {
	var found []string
	for _, f := range files {
		name := strings.TrimSuffix(f.ast.Name.Name, "_test")
		if slices.Contains(emptyNames, name) {
			found = append(found, fmt.Sprintf("%s: package %s says nothing; name it after what it provides", f.name, name))
		}
		if slices.Contains(standardNames, name) {
			found = append(found, fmt.Sprintf("%s: package %s is also one of the standard library; choose a name of its own", f.name, name))
		}
		if name != "main" && name != path.Base(f.dir) {
			found = append(found, fmt.Sprintf("%s: package %s is in the directory %s; give both one name", f.name, name, f.dir))
		}
	}
	return found
}

func checkPackageComments(files []file) []string {
	documented := map[string]bool{}
	for _, f := range files {
		documented[f.dir] = documented[f.dir] || f.ast.Doc != nil
	}
	var found []string
	for dir, ok := range documented {
		if !ok {
			found = append(found, dir+": no package comment; say in doc.go what the package is for and what it must never do")
		}
	}
	return found
}

func checkExportedComments(files []file) []string {
	var found []string
	for _, f := range files {
		if f.test || f.ast.Name.Name == "main" {
			continue
		}
		for _, name := range uncommented(f.ast) {
			found = append(found, fmt.Sprintf("%s: %s has no comment; say what it is, its units, its errors and who owns what it returns, or do not export it", f.at(name), name.Name))
		}
	}
	return found
}

// uncommented lists the exported names of a file that no comment explains; one
// comment on a group explains the whole group.
func uncommented(tree *ast.File) []*ast.Ident {
	var names []*ast.Ident
	add := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		if name.IsExported() && !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c != nil }) {
			names = append(names, name)
		}
	}
	for _, decl := range tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if receiverExported(d) {
				add(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					add(s.Name, d.Doc, s.Doc, s.Comment)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(name, d.Doc, s.Doc, s.Comment)
					}
				}
			}
		}
	}
	return names
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		name, ok := n.(*ast.Ident)
		exported = exported || ok && name.IsExported()
		return !ok
	})
	return exported
}

func checkInit(files []file) []string {
	var found []string
	for _, f := range files {
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
				found = append(found, f.at(d)+": func init hides what the program does; call it from the composition root, or use a package variable")
			}
		}
	}
	return found
}

// goStatements is how many bare go statements a package may have outside its
// tests. The numbers may only fall.
var goStatements = map[string]int{
	"internal/ledger/conformance": 4,
	"test/harness":                1,
	"test/scenarios":              1,
}

func checkGoStatements(files []file) []string {
	count := map[string]int{}
	for _, f := range files {
		count[f.dir] += 0
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok && !f.test {
				count[f.dir]++
			}
			return true
		})
	}
	var found []string
	for _, dir := range slices.Sorted(maps.Keys(count)) {
		if have, may := count[dir], goStatements[dir]; have > may {
			found = append(found, fmt.Sprintf("%s: %d go statements where %d are allowed; start goroutines with sync.WaitGroup.Go or an errgroup in a type whose Close waits", dir, have, may))
		} else if have < may {
			found = append(found, fmt.Sprintf("%s: %d go statements, fewer than the %d allowed; lower the number in internal/houserules/rules_test.go", dir, have, may))
		}
	}
	return found
}

// sleeps are the functions that wait for a while in real time, each with the
// reason why no event can be waited for instead.
var sleeps = map[string]string{
	"bench/load/load_test.go TestLatencyRunsFromWhenARequestWasDue": "is the stall that is measured",
	"bench/nodes/nodes_test.go lag":                                 "polls, between two looks",
	"bench/nodes/nodes_test.go round":                               "paces the load of a benchmark",
	"internal/ledger/postgres/main_test.go eventually":              "polls, between two looks",
	"internal/ledger/conformance/rules_batch.go quiet":              "a command that was given up tells nobody when it comes",
	"internal/ledger/conformance/run.go eventually":                 "polls, between two looks",
	"internal/ledger/conformance/run.go settle":                     "an overshoot shows only after the whole lag",
	"internal/live/bench_linux_test.go connect":                     "paces the connections of a benchmark",
	"internal/live/plain_test.go TestPlainStreams":                  "a stream must outlive the deadline of one write",
	"test/crash/crash_test.go TestKillsUnderLoad":                   "kills at a moment drawn by lot",
	"test/crash/nodes_test.go pause":                                "kills at a moment drawn by lot",
	"test/footprint/footprint_test.go TestFootprint":                "idle is a length of time",
	"test/scenarios/durability.go survivesKill":                     "kills at a moment drawn by lot",
	"test/scenarios/durability.go syncBeforeAnswer":                 "the tracer does not say when it has written a call down",
	"test/scenarios/identity.go retryAfter":                         "waits as long as Retry-After says",
	"test/scenarios/load.go stopAll":                                "the second signal comes into a stop under way",
}

func checkSleep(files []file) []string {
	openers := bubbleOpeners(files)
	var found []string
	for _, f := range files {
		if !f.test && !f.within("test", "bench", suite) || f.bubbles(openers[f.dir]) {
			continue
		}
		waits := map[string]ast.Node{}
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok {
				if n := waitOf(d); n != nil {
					waits[f.name+" "+d.Name.Name] = n
				}
			}
		}
		for place, n := range waits {
			if sleeps[place] == "" {
				found = append(found, f.at(n)+": a test that sleeps is slow or wrong; wait for the event, or run it in a testing/synctest bubble that this file opens")
			}
		}
		for place := range sleeps {
			if strings.HasPrefix(place, f.name+" ") && waits[place] == nil {
				found = append(found, place+" does not sleep any more; remove it from the list in internal/houserules/rules_test.go")
			}
		}
	}
	return found
}

// bubbleOpeners gives, for each package, the functions that run others in a
// synctest bubble.
func bubbleOpeners(files []file) map[string][]string {
	openers := map[string][]string{}
	for _, f := range files {
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && callOf(d, "synctest", "Test") != nil {
				openers[f.dir] = append(openers[f.dir], d.Name.Name)
			}
		}
	}
	return openers
}

// bubbles reports whether the file has tests in bubbles.
func (f file) bubbles(openers []string) (yes bool) {
	if slices.Contains(f.importPaths(), "testing/synctest") {
		return true
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name, ok := call.Fun.(*ast.Ident)
			yes = yes || ok && slices.Contains(openers, name.Name)
		}
		return !yes
	})
	return yes
}

// waitOf finds a sleep, or a timer that is waited for alone, outside of select.
func waitOf(d *ast.FuncDecl) ast.Node {
	if sleep := callOf(d, "time", "Sleep"); sleep != nil {
		return sleep
	}
	chosen := map[ast.Node]bool{} // what the cases of select receive
	var wait ast.Node
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CommClause:
			if s, ok := n.Comm.(*ast.ExprStmt); ok {
				chosen[s.X] = true
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && !chosen[n] && callOf(n.X, "time", "After") == n.X {
				wait = n
			}
		}
		return wait == nil
	})
	return wait
}

func checkPrinting(files []file) []string {
	var found []string
	for _, f := range files {
		if f.test {
			continue
		}
		if slices.Contains(f.importPaths(), "log") {
			found = append(found, f.name+": imports log; take a *slog.Logger from the caller")
		}
		f.calls("fmt", func(call *ast.CallExpr, name string) {
			if strings.HasPrefix(name, "Print") && f.within("internal") {
				found = append(found, fmt.Sprintf("%s: fmt.%s writes to a standard output that is not ours; return the text, take an io.Writer, or log", f.at(call), name))
			}
		})
	}
	return found
}

// ownLives are packages with something that lives longer than any caller, each
// with what ends it.
var ownLives = map[string]string{
	"internal/ledger/pebble": "the ledger's own goroutines, ended by Close",
	"internal/redis":         "the client's own goroutines, ended by Close",
}

func checkContexts(files []file) []string {
	var found []string
	for _, f := range files {
		if f.test || f.ast.Name.Name == "main" || f.within("test", "bench") || ownLives[f.dir] != "" {
			continue
		}
		f.calls("context", func(call *ast.CallExpr, name string) {
			if name == "Background" || name == "TODO" {
				found = append(found, fmt.Sprintf("%s: context.%s cannot be cancelled; take the caller's context, and context.WithoutCancel for what must be finished", f.at(call), name))
			}
		})
	}
	return found
}

const (
	maxFileLines     = 800
	maxFunctionLines = 100
)

func checkSizes(files []file) []string {
	var found []string
	for _, f := range files {
		if n := f.fset.File(f.ast.Pos()).LineCount(); n > maxFileLines {
			found = append(found, fmt.Sprintf("%s: %d lines, the most is %d; split it by what belongs together", f.name, n, maxFileLines))
		}
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && f.lines(d) > maxFunctionLines {
				found = append(found, fmt.Sprintf("%s: %s has %d lines, the most is %d; give its steps names", f.at(d), d.Name.Name, f.lines(d), maxFunctionLines))
			}
		}
	}
	return found
}

var (
	openEnd = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	issue   = regexp.MustCompile(`#\d+`)
)

func checkOpenEnds(files []file) []string {
	var found []string
	for _, f := range files {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if openEnd.MatchString(c.Text) && !issue.MatchString(c.Text) {
					found = append(found, f.at(c)+": an open end without an issue; do it, or write its number as #123")
				}
			}
		}
	}
	return found
}

package houserules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// file is one parsed Go file of the module.
type file struct {
	name string // from the root of the module, with slashes
	dir  string
	test bool
	ast  *ast.File
	fset *token.FileSet
}

func parse(fset *token.FileSet, name string, source []byte) (file, error) {
	tree, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	return file{name, path.Dir(name), strings.HasSuffix(name, "_test.go"), tree, fset}, err
}

// at names the place of a finding.
func (f file) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.name, f.fset.Position(n.Pos()).Line)
}

func (f file) lines(n ast.Node) int {
	return f.fset.Position(n.End()).Line - f.fset.Position(n.Pos()).Line + 1
}

// within reports whether the file is in one of the directories or below it.
func (f file) within(dirs ...string) bool {
	for _, dir := range dirs {
		if f.dir == dir || strings.HasPrefix(f.dir, dir+"/") {
			return true
		}
	}
	return false
}

func (f file) importPaths() []string {
	paths := make([]string, len(f.ast.Imports))
	for i, spec := range f.ast.Imports {
		paths[i] = strings.Trim(spec.Path.Value, `"`)
	}
	return paths
}

// calls gives each call of pkg.name to see.
func (f file) calls(pkg string, see func(call *ast.CallExpr, name string)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if call, name := asCall(n, pkg); call != nil {
			see(call, name)
		}
		return true
	})
}

// callOf returns a call of pkg.name within tree, or nil.
func callOf(tree ast.Node, pkg, name string) (found ast.Node) {
	ast.Inspect(tree, func(n ast.Node) bool {
		if call, called := asCall(n, pkg); call != nil && called == name && found == nil {
			found = call
		}
		return found == nil
	})
	return found
}

// asCall returns n as a call of a function of pkg, and that function's name.
func asCall(n ast.Node, pkg string) (*ast.CallExpr, string) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil, ""
	}
	if selector, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := selector.X.(*ast.Ident); ok && x.Name == pkg {
			return call, selector.Sel.Name
		}
	}
	return nil, ""
}

// readTree parses every Go file of the module; nested modules are others' business.
func readTree(t *testing.T) []file {
	t.Helper()
	var files []file
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root {
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			if base := entry.Name(); base[0] == '.' || base[0] == '_' || base == "testdata" || base == "node_modules" || nested == nil {
				return fs.SkipDir
			}
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := parse(fset, filepath.ToSlash(short), source)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A rule looks at the whole tree and says what is wrong, one sentence each.
type rule struct {
	name  string
	check func([]file) []string
}

func TestHouseRules(t *testing.T) {
	files := readTree(t)
	if len(files) < 10 {
		t.Fatalf("only %d files were found: the rules look at the wrong place", len(files))
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, finding := range slices.Sorted(slices.Values(r.check(files))) {
				t.Error(finding)
			}
		})
	}
}

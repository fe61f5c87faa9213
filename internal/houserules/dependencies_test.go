package houserules

import (
	"bytes"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const maxDependencies = 28

var (
	required = regexp.MustCompile(`(?m)^(?:require )?\s*(\S+\.\S+) v\S+`)
	listed   = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
)

// TestDependencies keeps the direct dependencies few, and each with a reason.
func TestDependencies(t *testing.T) {
	modules := matches(t, "go.mod", required)
	documented := matches(t, "docs/dependencies.md", listed)
	for _, finding := range checkDependencies(readTree(t), modules, documented) {
		t.Error(finding)
	}
}

func TestDependenciesCatch(t *testing.T) {
	imports := func(paths ...string) []file {
		source := bytes.NewBufferString("package a\n")
		for _, path := range paths {
			fmt.Fprintf(source, "import _ %q\n", path)
		}
		f, err := parse(token.NewFileSet(), "a/a.go", source.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return []file{f}
	}
	var many []string
	for i := range maxDependencies + 1 {
		many = append(many, fmt.Sprintf("x.org/m%d", i))
	}
	for _, tt := range []struct {
		name                string
		files               []file
		modules, documented []string
		want                string
	}{
		{"listed", imports("x.org/a/sub", "fmt"), []string{"x.org/a"}, []string{"x.org/a"}, ""},
		{"not listed", imports("x.org/a"), []string{"x.org/a"}, nil, "add its row"},
		{"longest module wins", imports("x.org/a/b/c"), []string{"x.org/a", "x.org/a/b"}, []string{"x.org/a/b"}, ""},
		{"listed, gone", nil, nil, []string{"x.org/a"}, "remove its row"},
		{"too many", imports(many...), many, many, "29 direct dependencies"},
	} {
		got := strings.Join(checkDependencies(tt.files, tt.modules, tt.documented), "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// checkDependencies compares the modules that the files import with those that the
// documentation lists.
func checkDependencies(files []file, modules, documented []string) []string {
	direct := map[string]string{} // module: a file that imports it
	for _, f := range files {
		for _, path := range f.importPaths() {
			best := ""
			for _, module := range modules {
				if (path == module || strings.HasPrefix(path, module+"/")) && len(module) > len(best) {
					best = module
				}
			}
			if best != "" {
				direct[best] = f.name
			}
		}
	}
	var found []string
	for module, user := range direct {
		if !slices.Contains(documented, module) {
			found = append(found, fmt.Sprintf("%s imports %s; add its row with the reason to docs/dependencies.md, or use what is there", user, module))
		}
	}
	for _, module := range documented {
		if !slices.Contains(modules, module) {
			found = append(found, fmt.Sprintf("docs/dependencies.md lists %s, which is not in go.mod; remove its row", module))
		}
	}
	if len(direct) > maxDependencies {
		found = append(found, fmt.Sprintf("%d direct dependencies, the most is %d; do without one", len(direct), maxDependencies))
	}
	return found
}

// matches gives what the first group of the expression finds in a file.
func matches(t *testing.T, name string, expression *regexp.Regexp) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range expression.FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s: nothing matches %s", name, expression)
	}
	return all
}

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// matrixHead is the text above the table of docs/conformance.md.
const matrixHead = `# Conformance

Which ledger keeps which rule of ` + "`internal/ledger/ledger.go`" + `. Each driver's test compares its column with
what it found; ` + "`go test ./internal/ledger/DRIVER -conformance.update`" + ` rewrites it.
A rule that a driver lacks is not checked for it, and the reason stands in its place.
`

// checkMatrix compares one driver's column of docs/conformance.md with results,
// or rewrites it when -conformance.update is given.
func checkMatrix(t *testing.T, driver string, results map[string]string) {
	t.Helper()
	path := filepath.Join(moduleRoot(t), "docs", "conformance.md")
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	want := withColumn(string(old), driver, results)
	if want == string(old) {
		return
	}
	if !*flagUpdate {
		t.Errorf("docs/conformance.md is not what %s keeps; run with -conformance.update and review the diff", driver)
		return
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withColumn returns the matrix with one driver's column replaced or added.
// Columns are in the order of their names.
func withColumn(text, driver string, results map[string]string) string {
	columns := parseMatrix(text)
	columns[driver] = results
	drivers := make([]string, 0, len(columns))
	for name := range columns {
		drivers = append(drivers, name)
	}
	slices.Sort(drivers)

	var b strings.Builder
	b.WriteString(matrixHead + "\n| Rule | " + strings.Join(drivers, " | ") + " |\n")
	b.WriteString("|---" + strings.Repeat("|---", len(drivers)) + "|\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "| %s |", r.id)
		for _, name := range drivers {
			fmt.Fprintf(&b, " %s |", columns[name][r.id])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// parseMatrix reads the table back: driver, rule, result.
func parseMatrix(text string) map[string]map[string]string {
	columns := map[string]map[string]string{}
	var drivers []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for k := range cells {
			cells[k] = strings.TrimSpace(cells[k])
		}
		if cells[0] == "Rule" {
			drivers = cells[1:]
			for _, name := range drivers {
				columns[name] = map[string]string{}
			}
			continue
		}
		for k, cell := range cells[1:] {
			columns[drivers[k]][cells[0]] = cell
		}
	}
	return columns
}

// moduleRoot is the nearest directory upwards that has a go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

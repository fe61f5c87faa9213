// Command vulncheck runs govulncheck on the module in the current directory where
// only the module proxy can be reached: the reports are taken from the module
// golang.org/x/vulndb, of a fixed version so that a run can be repeated.
//
// It exits with 1 when the program can call a vulnerable function, and with 3 when
// the reports cannot be downloaded. Findings in the standard library are only
// listed: they are mended by the toolchain that a release is built with, and not by
// a change here.
//
//	go -C tools build -o DIR ./vulncheck && DIR/vulncheck
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const reports = "golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		if errors.Is(err, errNoReports) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

var errNoReports = errors.New("the reports cannot be downloaded")

func run() error {
	out, err := exec.Command("go", "mod", "download", "-json", reports).Output()
	if err != nil {
		return fmt.Errorf("%w: %w: %s", errNoReports, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	db, err := os.MkdirTemp("", "vulndb")
	if err != nil {
		return err
	}
	defer os.RemoveAll(db)
	if err := buildDatabase(filepath.Join(module.Dir, "data", "osv"), db); err != nil {
		return fmt.Errorf("build the database: %w", err)
	}
	scan := exec.Command("go", "tool", "-modfile=tools/go.mod", "govulncheck", "-format=json", "-db=file://"+filepath.ToSlash(db), "./...")
	scan.Stderr = os.Stderr
	found, err := scan.Output()
	if err != nil {
		return fmt.Errorf("govulncheck: %w", err)
	}
	return judge(found)
}

// entry is the part of an OSV report that the database's index needs.
type entry struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
	Aliases  []string  `json:"aliases,omitempty"`
	Affected []struct {
		Package struct{ Name string }
	} `json:"affected,omitempty"`
}

// moduleVuln leaves out the version that mends it, so that the report itself decides.
type moduleVuln struct {
	ID       string    `json:"id"`
	Modified time.Time `json:"modified"`
}

type moduleIndex struct {
	Path  string       `json:"path"`
	Vulns []moduleVuln `json:"vulns"`
}

// buildDatabase writes the files that govulncheck reads: every report under ID, and
// three indexes.
func buildDatabase(source, db string) error {
	names, err := filepath.Glob(filepath.Join(source, "GO-*.json"))
	if err != nil || len(names) == 0 {
		return errors.Join(err, errors.New("no reports in "+source))
	}
	for _, dir := range []string{"ID", "index"} {
		if err := os.MkdirAll(filepath.Join(db, dir), 0o755); err != nil {
			return err
		}
	}
	var vulns []entry
	modules := map[string]*moduleIndex{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(db, "ID", filepath.Base(name)), text, 0o644); err != nil {
			return err
		}
		for _, affected := range e.Affected {
			m := modules[affected.Package.Name]
			if m == nil {
				m = &moduleIndex{Path: affected.Package.Name}
				modules[m.Path] = m
			}
			m.Vulns = append(m.Vulns, moduleVuln{ID: e.ID, Modified: e.Modified})
		}
		e.Affected = nil
		vulns = append(vulns, e)
	}
	var index []*moduleIndex
	for _, m := range modules {
		index = append(index, m)
	}
	return errors.Join(
		writeJSON(filepath.Join(db, "index", "modules.json"), index),
		writeJSON(filepath.Join(db, "index", "vulns.json"), vulns),
		writeJSON(filepath.Join(db, "index", "db.json"), map[string]time.Time{"modified": time.Now().UTC()}),
	)
}

func writeJSON(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// judge reads govulncheck's stream of messages. Only a finding whose trace starts
// in a function is one that the program can reach.
func judge(stream []byte) error {
	type frame struct{ Module, Package, Function string }
	var reached, standard []string
	scanned := false
	for decoder := json.NewDecoder(bytes.NewReader(stream)); ; {
		var message struct {
			SBOM    *struct{} `json:"SBOM"`
			Finding *struct {
				OSV   string
				Fixed string `json:"fixed_version"`
				Trace []frame
			}
		}
		if err := decoder.Decode(&message); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		scanned = scanned || message.SBOM != nil
		f := message.Finding
		if f == nil || f.Trace[0].Function == "" {
			continue
		}
		line := fmt.Sprintf("%s in %s %s, fixed in %s", f.OSV, f.Trace[0].Module, f.Trace[0].Package, f.Fixed)
		if f.Trace[0].Module == "stdlib" {
			standard = append(standard, line)
		} else {
			reached = append(reached, line)
		}
	}
	if !scanned {
		return errors.New("govulncheck reported nothing, not even what it looked at")
	}
	for _, line := range slices.Compact(slices.Sorted(slices.Values(standard))) {
		fmt.Println("toolchain:", line)
	}
	reached = slices.Compact(slices.Sorted(slices.Values(reached)))
	if len(reached) > 0 {
		return fmt.Errorf("vulnerable functions can be reached: %q", reached)
	}
	fmt.Println("no vulnerable function of a dependency can be reached")
	return nil
}

// Package realdata runs the main job on real input: 51,576 likes with their
// original times are imported into the running program, which is killed in the
// middle, and everything that can be read back is compared with the input.
//
// The data are not part of the project. LIKEWISE_DATA names their directory; by
// default it is ../shared/data beside the repository. Without them the test is
// skipped.
package realdata

import (
	"bufio"
	"compress/gzip"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const fileName = "movielens-small-likes.ndjson.gz"

// The five most liked films and their exact counts.
var top = []struct {
	id    string
	count int64
}{{"318", 274}, {"296", 252}, {"356", 251}, {"593", 239}, {"260", 232}}

func dataFile(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("LIKEWISE_DATA")
	if dir == "" {
		root, err := harness.Root()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(root, "..", "shared", "data")
	}
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: the real likes are not here (%v); set LIKEWISE_DATA to their directory", err)
	}
	return path
}

func readLines(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	read := func(s *bufio.Scanner) {
		for s.Scan() {
			lines = append(lines, s.Text())
		}
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasSuffix(path, ".gz") {
		read(bufio.NewScanner(f))
		return lines
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	read(bufio.NewScanner(z))
	return lines
}

type line struct {
	harness.Item
	User    string    `json:"user"`
	LikedAt time.Time `json:"liked_at"`
}

// service is the program with a client and the acknowledged input.
type service struct {
	*testing.T
	node    *harness.Node
	client  *harness.Client
	admin   []string // flags of commands on the admin listener
	file    string
	public  []string // flags of import
	checker *harness.Checker
}

func newService(t *testing.T, file string, input []string) *service {
	t.Helper()
	keys := harness.NewKeys(t)
	node := harness.NewNode(t, harness.NodeConfig{Keys: keys, Flags: []string{"--limits-address-rate", "0"}})
	client := harness.NewClient([]string{node.URL}, []string{node.AdminURL}, keys)
	t.Cleanup(client.Close)
	acks := harness.NewAcks()
	for _, text := range input {
		var l line
		if err := harness.Decode([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		acks.Begin(l.User, l.Item, true)(true)
	}
	return &service{
		T: t, node: node, client: client, file: file,
		admin:   []string{"--admin-url", node.AdminURL, "--token", keys.Token("operator", harness.ScopeAdmin)},
		public:  []string{"--url", node.URL, "--progress-file", filepath.Join(t.TempDir(), "progress"), "--token", keys.Token("importer", harness.ScopeWriteAny+" "+harness.ScopeImport)},
		checker: &harness.Checker{Client: client, Acks: acks, Within: 30 * time.Second},
	}
}

// topCounts reads the five films, in the order of top.
func (s *service) topCounts(ctx context.Context) ([]int64, error) {
	items := make([]harness.Item, len(top))
	for k, m := range top {
		items[k] = harness.Item{Collection: "movies", ID: m.id}
	}
	counts, err := s.client.Counts(ctx, "", items...)
	got := make([]int64, len(counts))
	for k, c := range counts {
		got[k] = c.Count
	}
	return got, err
}

// never is a number of likes that no film has.
const never = 1 << 20

// importing starts an import and reads counts while it runs. They may only grow
// and never pass the truth. When the first film reaches a number of likes, it
// kills and restarts the program, which the import has to sit out; at another
// number it kills the import as well. It returns what the import said and whether
// it came to its end.
func (s *service) importing(killServer, killBoth int64) (said string, done bool) {
	s.Helper()
	var out strings.Builder
	cmd := exec.CommandContext(s.Context(), harness.Binary(s.T), append([]string{"import", s.file}, s.public...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	last := make([]int64, len(top))
	for reads := 0; ; reads++ {
		select {
		case err := <-ended:
			s.Logf("import with %d reads meanwhile: %v\n%s", reads, err, out.String())
			if reads == 0 {
				s.Error("no read happened during the import")
			}
			return out.String(), err == nil
		default:
		}
		got, err := s.topCounts(s.Context())
		if err != nil {
			s.Fatalf("read during the import: %v", err)
		}
		for k, n := range got {
			if n < last[k] || n > top[k].count {
				s.Fatalf("counts during the import went from %v to %v", last, got)
			}
		}
		last = got
		both := got[0] >= killBoth
		if !both && got[0] < killServer {
			continue
		}
		s.node.Kill()
		if both {
			_ = cmd.Process.Kill() // it may just have ended by itself
			killBoth = never
		}
		killServer, last = never, make([]int64, len(top)) // what was not acknowledged may be gone
		s.client.Close()
		s.node.StartReady(s.Context())
	}
}

// export returns the sorted lines of an export.
func (s *service) export() []string {
	s.Helper()
	file := filepath.Join(s.TempDir(), "export.ndjson")
	s.cli(append([]string{"export", file}, s.admin...)...)
	lines := readLines(s.T, file)
	slices.Sort(lines)
	return lines
}

func (s *service) cli(args ...string) {
	s.Helper()
	if out, errs, code := harness.CLI(s.Context(), s.T, args...); code != 0 {
		s.Fatalf("%s ended with %d\n%s%s", args[0], code, out, errs)
	}
}

func (s *service) wantAll(input []string, when string) {
	s.Helper()
	got, err := s.topCounts(s.Context())
	for k, m := range top {
		if err != nil || got[k] != m.count {
			s.Fatalf("%s: the top counts are %v, %v; want %v", when, got, err, top)
		}
	}
	if err := s.checker.Check(s.Context()); err != nil {
		s.Fatalf("%s: %v", when, err)
	}
	if diff := cmp.Diff(input, s.export()); diff != "" {
		s.Fatalf("%s: the sorted export differs from the sorted input (-input +export):\n%.2000s", when, diff)
	}
}

func TestImportKillResume(t *testing.T) {
	file := dataFile(t)
	input := readLines(t, file)
	slices.Sort(input)
	if len(input) != 51_576 {
		t.Fatalf("the input has %d lines, want 51576", len(input))
	}
	s := newService(t, file, input)
	s.node.StartReady(t.Context())
	if _, done := s.importing(50, 150); done {
		t.Fatal("the import came to its end before it was killed")
	}
	if n, err := s.topCounts(t.Context()); err != nil || n[0] < 50 || n[0] == top[0].count {
		t.Fatalf("after the kill the counts are %v, %v, want the first in the middle", n, err)
	}
	if said, done := s.importing(never, never); !done || !strings.Contains(said, "continuing behind line") {
		t.Fatal("the import was not resumed")
	}
	s.wantAll(input, "after the import")

	changes := s.changes()
	if said, done := s.importing(never, never); !done || !strings.HasPrefix(said, "51576 lines: 51576 likes") {
		t.Fatal("the second import failed")
	}
	if again := s.changes(); again != changes {
		t.Fatalf("the second import made %v changes", again-changes)
	}
	s.wantAll(input, "after the second import")
	s.cli(append([]string{"reconcile"}, s.admin...)...)
	s.node.Stop()
}

// changesMetric counts facts added and removed.
const changesMetric = "likewise_changes_total"

func (s *service) changes() float64 {
	s.Helper()
	n, err := s.client.Metric(s.Context(), changesMetric)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

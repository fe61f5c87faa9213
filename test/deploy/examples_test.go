package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"likewise/test/harness"
	"likewise/test/servers"
)

// setup is example files whose processes belong together.
type setup struct {
	files []string // below deploy/examples; the first one serves users
	// flags starts the servers that the files name, and tells where they are.
	flags func(t *testing.T) []string
	// oneByOne waits for each node: one node makes a ledger of several databases.
	oneByOne bool
}

var setups = []setup{
	{files: []string{"single.yaml"}, flags: func(*testing.T) []string { return nil }},
	{files: []string{"two-nodes/node1.yaml", "two-nodes/node2.yaml"}, flags: databaseAndRedis},
	{files: []string{"roles/api.yaml", "roles/aggregator.yaml", "roles/reconciler.yaml"}, flags: databaseAndRedis},
	{files: []string{"cluster.yaml", "cluster.yaml"}, flags: shardsAndCluster, oneByOne: true},
}

func databaseAndRedis(t *testing.T) []string {
	return []string{"--ledger", servers.Database(t), "--redis", servers.Redis(t).URL()}
}

// shardsAndCluster has two databases of one server for two servers.
func shardsAndCluster(t *testing.T) []string {
	primary := servers.Postgres(t, servers.WithReplicas)
	first, second := primary.Database(t), primary.Database(t)
	pool := servers.PgBouncer(t, first).URL()
	at := func(place, database string) string { return moved(t, database, place) }
	replica := primary.Replica().URL()
	return []string{
		"--ledger", at(pool, first) + "," + at(pool, second),
		"--postgres-replicas", at(replica, first) + "," + at(replica, second),
		"--redis", servers.RedisCluster(t).URL(),
	}
}

// moved returns the URL of a database at the server of another URL.
func moved(t *testing.T, database, place string) string {
	t.Helper()
	to, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	to.Host = at.Host
	return to.String()
}

func TestExamples(t *testing.T) {
	for _, s := range setups {
		t.Run(strings.TrimSuffix(s.files[0], ".yaml"), func(t *testing.T) {
			keys, flags := harness.NewKeys(t), s.flags(t)
			var nodes []*harness.Node
			for _, file := range s.files {
				n := start(t, keys, file, flags)
				if s.oneByOne {
					ready(t, n)
				}
				nodes = append(nodes, n)
			}
			for _, n := range nodes {
				ready(t, n)
			}
			serving := slices.DeleteFunc(slices.Clone(nodes), func(n *harness.Node) bool { return !isOpen(n.URL) })
			if serving[0] != nodes[0] {
				t.Fatalf("%s does not serve users", s.files[0])
			}
			likeAndSee(t, keys, serving)
			for _, n := range nodes {
				n.Stop()
			}
		})
	}
}

// start starts an example as it is, with the addresses that flags tell.
func start(t *testing.T, keys *harness.Keys, file string, flags []string) *harness.Node {
	t.Helper()
	path := filepath.Join(root(t), "deploy", "examples", filepath.FromSlash(file))
	n := harness.NewNode(t, harness.NodeConfig{Keys: keys, Flags: append([]string{"--config", path}, flags...)})
	n.Start()
	return n
}

func ready(t *testing.T, n *harness.Node) {
	t.Helper()
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, n.LogTail())
	}
}

// likeAndSee likes through the first node; all see the state at once and the count
// soon.
func likeAndSee(t *testing.T, keys *harness.Keys, nodes []*harness.Node) {
	t.Helper()
	const users = 20
	post := harness.Post("42")
	first := clientOf(t, keys, nodes[0])
	for i := range users {
		user := fmt.Sprint("user-", i)
		if got, err := first.Like(t.Context(), user, post); err != nil || !got.Liked || got.Count < 1 {
			t.Fatalf("like of %s: %+v, %v", user, got, err)
		}
		for _, n := range nodes {
			if got, err := clientOf(t, keys, n).State(t.Context(), user, post); err != nil || !got.Liked {
				t.Fatalf("%s through %s: %+v, %v", user, n.URL, got, err)
			}
		}
	}
	for _, n := range nodes {
		eventually(t, func() error { return counts(t, clientOf(t, keys, n), post, users) })
	}
}

func clientOf(t *testing.T, keys *harness.Keys, n *harness.Node) *harness.Client {
	c := harness.NewClient([]string{n.URL}, []string{n.AdminURL}, keys)
	t.Cleanup(c.Close)
	return c
}

// counts compares the count that anybody sees.
func counts(t *testing.T, c *harness.Client, item harness.Item, want int64) error {
	got, err := c.Counts(t.Context(), "", item)
	if err == nil && got[0].Count != want {
		err = fmt.Errorf("count %d, want %d", got[0].Count, want)
	}
	return err
}

// eventually asks until there is no error, for 15 s at most.
func eventually(t *testing.T, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	last := errors.New("not asked")
	if harness.Poll(ctx, 20*time.Millisecond, func() (bool, error) { last = ask(); return last == nil, nil }) != nil {
		t.Fatal(last)
	}
}

// TestEveryExampleIsStarted finds files that nobody starts.
func TestEveryExampleIsStarted(t *testing.T) {
	dir := filepath.Join(root(t), "deploy", "examples")
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		started := slices.ContainsFunc(setups, func(s setup) bool { return slices.Contains(s.files, filepath.ToSlash(name)) })
		if err == nil && !started {
			t.Errorf("%s is in no setup of this test", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestExamplesNameWhatIsReplaced keeps the flags of the tests from hiding that a file
// says nothing.
func TestExamplesNameWhatIsReplaced(t *testing.T) {
	for file, wants := range map[string][]string{
		"two-nodes/node1.yaml":  {"ledger", "redis", "  secret_file"},
		"two-nodes/node2.yaml":  {"ledger", "redis", "  secret_file"},
		"roles/api.yaml":        {"ledger", "redis", "role", "  secret_file"},
		"roles/aggregator.yaml": {"ledger", "redis", "role", "  secret_file"},
		"roles/reconciler.yaml": {"ledger", "role", "  secret_file"},
		"cluster.yaml":          {"ledger", "redis", "  replicas", "  pgbouncer", "  secret_file"},
	} {
		path := filepath.Join(root(t), "deploy", "examples", filepath.FromSlash(file))
		out, errs, code := harness.CLI(t.Context(), t, "config", "print", "--config", path)
		if code != 0 {
			t.Errorf("%s: exit code %d\n%s", file, code, errs)
		}
		for _, want := range wants {
			said := slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
				return strings.HasPrefix(line, want+":") && strings.Contains(line, " # "+path+":")
			})
			if !said {
				t.Errorf("%s does not set %s", file, strings.TrimSpace(want))
			}
		}
	}
}

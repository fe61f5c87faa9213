package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"
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
	// also, when not nil, looks at what else there is to see of the likes.
	also func(t *testing.T, flags []string)
}

var setups = []setup{
	{files: []string{"single.yaml"}, flags: func(*testing.T) []string { return nil }},
	{files: []string{"two-nodes/node1.yaml", "two-nodes/node2.yaml"}, flags: databaseAndRedis},
	{files: []string{"roles/api.yaml", "roles/aggregator.yaml", "roles/reconciler.yaml"}, flags: databaseAndRedis},
	{files: []string{"mirror.yaml"}, flags: databaseWithTable, also: column},
	{files: []string{"cluster.yaml", "cluster.yaml"}, flags: shardsAndCluster},
}

func databaseAndRedis(t *testing.T) []string {
	return []string{"--ledger", servers.Database(t), "--redis", servers.Redis(t).URL()}
}

// databaseWithTable has the application's table beside the ledger.
func databaseWithTable(t *testing.T) []string {
	flags := databaseAndRedis(t)
	const table = "CREATE TABLE posts (id bigint PRIMARY KEY, like_count bigint NOT NULL DEFAULT 0)"
	conn := connect(t, flags[1])
	for _, sql := range []string{table, "INSERT INTO posts VALUES (42), (43)"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return append(flags, "--mirror-tables", fmt.Sprintf("{posts: {url: %q, table: posts, id_column: id, count_column: like_count}}", flags[1]))
}

// column waits until the table says what was liked.
func column(t *testing.T, flags []string) {
	t.Helper()
	conn := connect(t, flags[1])
	eventually(t, func() error {
		var got string
		err := conn.QueryRow(t.Context(), "SELECT string_agg(id || ':' || like_count, ' ' ORDER BY id) FROM posts").Scan(&got)
		if want := fmt.Sprintf("42:%d 43:0", users); err == nil && got != want {
			err = fmt.Errorf("the table says %s, want %s", got, want)
		}
		return err
	})
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
			if !strings.HasPrefix(s.files[0], "two-nodes/") {
				harness.SkipUnlessHeavy(t, "it takes seconds to start what the example needs")
			}
			keys, flags := harness.NewKeys(t), s.flags(t)
			var nodes []*harness.Node
			for _, file := range s.files {
				n := start(t, keys, file, flags)
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
			if s.also != nil {
				s.also(t, flags)
			}
			for _, n := range nodes {
				n.Stop()
			}
		})
	}
}

// patient is for a disk that others use too, which may hold a sync for seconds.
var patient = []string{"--postgres-queue-age", "1m", "--limits-request-timeout", "1m"}

// start starts an example as it is, with the addresses that flags tell.
func start(t *testing.T, keys *harness.Keys, file string, flags []string) *harness.Node {
	t.Helper()
	path := filepath.Join(root(t), "deploy", "examples", filepath.FromSlash(file))
	n := harness.NewNode(t, harness.NodeConfig{Keys: keys, Flags: slices.Concat([]string{"--config", path}, patient, flags)})
	n.Start()
	return n
}

func ready(t *testing.T, n *harness.Node) {
	t.Helper()
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, n.LogTail())
	}
}

// users is how many like posts/42.
const users = 5

// likeAndSee likes through the first node; all see the state at once and the count
// soon.
func likeAndSee(t *testing.T, keys *harness.Keys, nodes []*harness.Node) {
	t.Helper()
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

// eventually asks until there is no error, for a minute at most.
func eventually(t *testing.T, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
		"mirror.yaml":           {"ledger", "redis", "  tables", "  secret_file"},
		"cluster.yaml":          {"ledger", "redis", "  replicas", "  pgbouncer", "  secret_file"},
	} {
		path := filepath.Join(root(t), "deploy", "examples", filepath.FromSlash(file))
		cmd := exec.Command(harness.Binary(t), "config", "print", "--config", path)
		cmd.Env = []string{} // no settings of the tests
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
		for _, want := range wants {
			said := slices.ContainsFunc(strings.Split(string(out), "\n"), func(line string) bool {
				return strings.HasPrefix(line, want+":") && strings.Contains(line, " # "+path+":")
			})
			if !said {
				t.Errorf("%s does not set %s", file, strings.TrimSpace(want))
			}
		}
	}
}

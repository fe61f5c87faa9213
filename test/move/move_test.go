// Package move moves the likes of running servers to other stores with the real
// program, while users go on liking: the mover is killed in every stage, the source
// has to serve again by itself, and after the switch the target has to hold what
// either of the two ever acknowledged.
package move

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"likewise/test/harness"
	"likewise/test/servers"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	workers = 16
	users   = 200
	items   = 60 // the first one takes half of the load
)

// store is where likes are: what the mover is told, and how servers are started.
type store struct {
	place string   // of the mover; empty: the admin listener of the server
	dir   string   // of the server's data, "" for a new one
	flags []string // of serve
	nodes int
}

func embedded(t *testing.T) store {
	dir := filepath.Join(t.TempDir(), "data")
	return store{place: dir, dir: dir, nodes: 1}
}

func database(t *testing.T) store {
	url := servers.Database(t)
	return store{place: url, flags: []string{"--ledger", url}, nodes: 2}
}

func TestMoveUnderLoad(t *testing.T) {
	for _, tt := range []struct {
		name     string
		from, to func(*testing.T) store
	}{
		{"directory to directory", embedded, embedded},
		{"directory to database", embedded, database},
		{"database to directory", database, embedded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name != "directory to database" {
				harness.SkipUnlessHeavy(t, "a move takes seconds, and the others go the same ways")
			}
			w := &world{T: t, keys: harness.NewKeys(t), acks: harness.NewAcks()}
			w.move(tt.from(t), tt.to(t))
		})
	}
}

// world is users, whose acknowledgements are remembered across the move.
type world struct {
	*testing.T
	keys *harness.Keys
	acks *harness.Acks
}

// service is the running servers of one store.
type service struct {
	nodes  []*harness.Node
	client *harness.Client
}

func (w *world) serve(s store) *service {
	w.Helper()
	sv := &service{}
	var urls, admin []string
	for range s.nodes {
		n := harness.NewNode(w.T, harness.NodeConfig{
			Keys: w.keys, DataDir: s.dir,
			Flags: append([]string{"--limits-user-rate", "0", "--limits-address-rate", "0"}, s.flags...),
		})
		n.StartReady(w.Context())
		sv.nodes, urls, admin = append(sv.nodes, n), append(urls, n.URL), append(admin, n.AdminURL)
	}
	sv.client = harness.NewClient(urls, admin, w.keys)
	w.Cleanup(sv.client.Close)
	return sv
}

func (s *service) stop() {
	for _, n := range s.nodes {
		n.Stop()
	}
}

func (w *world) move(from, to store) {
	source := w.serve(from)
	if from.dir != "" {
		from.place = source.nodes[0].AdminURL
	}
	w.fill(source)
	stop := w.like(source)
	defer func() { stop() }()

	token := filepath.Join(w.TempDir(), "token")
	if err := os.WriteFile(token, []byte(w.keys.Token("operator", harness.ScopeAdmin)), 0o600); err != nil {
		w.Fatal(err)
	}
	args := []string{"move", "--from", from.place, "--to", to.place, "--from-token-file", token, "--resume"}
	for _, stage := range []string{"copying: ", "comparing everything: ", "stands still", "Now let everything use the target"} {
		m := start(w.T, args)
		m.waitFor(stage)
		m.kill()
	}
	w.accepts(source)

	m := start(w.T, args)
	m.waitFor("Now let everything use the target")
	w.standsStill(source)
	before := w.export(source)
	target := w.serve(to)
	if after := w.export(target); after != before {
		w.Errorf("the source exports %d bytes, the target %d others", len(before), len(after))
	}
	stop()
	stop = w.like(target)
	source.stop()
	if from.dir == "" {
		m.interrupt() // a database goes on without its servers
	}
	if code := m.wait(); code != 0 {
		w.Errorf("the move ended with %d\n%s", code, m.output())
	}
	stop()
	checker := &harness.Checker{Client: target.client, Acks: w.acks, Within: time.Minute}
	if err := checker.Check(w.Context()); err != nil {
		w.Errorf("after the move: %v", err)
	}
	target.stop()
}

// fill makes the copy take a while.
func (w *world) fill(s *service) {
	w.Helper()
	const batches = 20
	for k := range harness.Size(batches, 5*batches) {
		commands := make([]harness.Command, harness.MaxBatch)
		for n := range commands {
			commands[n] = harness.Command{
				Item: harness.Item{Collection: "old", ID: strconv.Itoa(n % 97)}, User: fmt.Sprintf("old%d-%d", k, n),
				Op: "like", LikedAt: time.UnixMicro(int64(1_500_000_000_000_000 + 1000*k + n/10)).UTC().Format(time.RFC3339Nano),
			}
		}
		res, err := s.client.Do(w.Context(), harness.Request{
			Method: http.MethodPost, Path: "/v1/likes:batch", User: "backend", Scope: harness.ScopeWriteAny + " " + harness.ScopeImport,
			Body: map[string]any{"commands": commands},
		})
		if err != nil || res.Status != http.StatusOK {
			w.Fatalf("batch: %d %s, %v", res.Status, res.Body, err)
		}
	}
}

// like lets users like and unlike until stop is called.
func (w *world) like(s *service) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	recorder := harness.Recorder{Client: s.client, Acks: w.acks}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				item := 0
				if rand.IntN(2) == 0 {
					item = 1 + rand.IntN(items-1)
				}
				user := "u" + strconv.Itoa(rand.IntN(users))
				// What is refused while the source stands still may or may not have
				// happened, for all that a client knows.
				_, err := recorder.Set(context.WithoutCancel(ctx), user, harness.Post(strconv.Itoa(item)), rand.IntN(10) < 6)
				pause := 5 * time.Millisecond
				if err != nil {
					pause = 100 * time.Millisecond
				}
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	return sync.OnceFunc(func() { cancel(); wg.Wait() })
}

// accepts waits until every server accepts likes.
func (w *world) accepts(s *service) {
	w.Helper()
	for _, c := range s.client.Each() {
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		err := harness.Poll(ctx, 10*time.Millisecond, func() (bool, error) {
			_, err := harness.Recorder{Client: c, Acks: w.acks}.Set(ctx, "late", harness.Post("late"), true)
			return err == nil, nil
		})
		cancel()
		if err != nil {
			w.Errorf("likes are not accepted after the mover died: %v", err)
		}
	}
}

// standsStill demands that every server refuses likes, in a way that tells clients
// to repeat them, and answers reads.
func (w *world) standsStill(s *service) {
	w.Helper()
	for _, c := range s.client.Each() {
		res, err := c.Do(w.Context(), harness.Request{Method: http.MethodPut, Path: harness.Post("1").Path("like"), User: "late"})
		if err != nil || res.Status != http.StatusServiceUnavailable || res.RetryAfter() < 1 {
			w.Errorf("a like while the source stands still: %d %s, %v", res.Status, res.Body, err)
		}
		if _, err := c.State(w.Context(), "late", harness.Post("late")); err != nil {
			w.Errorf("a read while the source stands still: %v", err)
		}
	}
}

// export returns all likes, in one order.
func (w *world) export(s *service) string {
	w.Helper()
	out, errs, code := harness.CLI(w.Context(), w.T, "export", "-", "--admin-url", s.nodes[0].AdminURL,
		"--token", w.keys.Token("operator", harness.ScopeAdmin))
	if code != 0 || out == "" {
		w.Fatalf("export ended with %d\n%s", code, errs)
	}
	return strings.Join(slices.Sorted(strings.Lines(out)), "")
}

// errEnded says that a mover ended before it said what was waited for.
var errEnded = errors.New("the mover ended")

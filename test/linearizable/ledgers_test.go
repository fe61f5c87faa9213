package linearizable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"likewise/internal/ledger/postgres"
	"likewise/internal/like"
	"likewise/test/harness"
	"likewise/test/servers"
)

// TestNodesOfOneDatabase has three nodes share a database that breaks.
func TestNodesOfOneDatabase(t *testing.T) {
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	pg := servers.Postgres(t)
	n := startNodes(t, pg, pg.Database(t), postgres.Config{
		QueueAge: 300 * time.Millisecond, // commands fail while their clients wait
	})
	for _, line := range n.lines() {
		breakCommits(line)
	}
	work := &load{pick: n.pick, seed: seed, enough: harness.Size[int64](20, 500)}
	work.start(t)
	breakAll(t, rng, n.faults(t, rng), harness.Size(1, 8))
	work.stop(t)
	commitsBroke(t, n.lines())
	for _, line := range n.lines() {
		line.OnCommit(nil)
	}
	n.agree(t)
}

// TestReadsFromReplicas has nodes read from a replica that stands still, falls behind
// and stops. Every read shows what was acknowledged before it. It may also show a
// command that is under way, and the next one not: a replica replays a commit while
// the primary still waits before it lets anybody see it, most of all under synchronous
// replication. So reads are checked against the commands that they do not overlap.
func TestReadsFromReplicas(t *testing.T) {
	harness.SkipUnlessHeavy(t, "a replica takes seconds to start")
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	pg := servers.Postgres(t, servers.WithReplicas)
	database := pg.Database(t)
	n := startNodes(t, pg, database, postgres.Config{
		QueueAge: time.Minute,
		Replicas: []string{strings.Replace(database, hostOf(t, pg.URL()), hostOf(t, pg.Replica().URL()), 1)},
	})
	work := &load{pick: n.pick, seed: seed, enough: 40, ahead: true}
	work.start(t)
	breakAll(t, rng, []fault{
		{"replica frozen", func() int {
			pg.Replica().Freeze(t)
			rest(t.Context(), 300*time.Millisecond)
			pg.Replica().Thaw(t)
			return 1
		}},
		{"replica stopped", func() int {
			pg.Replica().StopImmediate(t)
			pg.Replica().Start(t)
			return 1
		}},
		{"connections to the replica ended", func() int {
			return sever(t, pg.Replica()) // nodes leave one that stopped alone for a while
		}},
	}, 3)
	work.stop(t)
	n.agree(t)
}

// nodes are three ledgers over one database, each with a line of its own.
type nodes struct {
	pg      *servers.PostgresServer
	members [3]*member
}

type member struct {
	cfg    postgres.Config
	line   *servers.TCPProxy
	ledger atomic.Pointer[postgres.Ledger]
}

func hostOf(t *testing.T, serverURL string) string {
	t.Helper()
	u, err := url.Parse(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// startNodes opens nodes with some settings; the second one lets commands wait three
// times as long, and the third nine times.
func startNodes(t *testing.T, pg *servers.PostgresServer, database string, with postgres.Config) *nodes {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	n := &nodes{pg: pg}
	age := with.QueueAge
	for k := range n.members {
		m := &member{line: servers.Proxy(t, database), cfg: postgres.DefaultConfig()}
		m.cfg.URLs, m.cfg.Replicas = []string{m.line.URL()}, with.Replicas
		m.cfg.Writers = 2
		m.cfg.QueueAge = age
		m.cfg.DrainInterval = 50 * time.Millisecond
		if err := m.open(t); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.ledger.Load().Close() })
		n.members[k] = m
		age *= 3
	}
	return n
}

func (m *member) open(t *testing.T) error {
	l, err := postgres.Open(t.Context(), m.cfg)
	if err == nil {
		m.ledger.Store(l)
	}
	return err
}

func (n *nodes) pick(rng *rand.Rand) (int, node) {
	k := rng.IntN(len(n.members))
	return k, n.members[k].ledger.Load()
}

func (n *nodes) faults(t *testing.T, rng *rand.Rand) []fault {
	any := func() *member { return n.members[rng.IntN(len(n.members))] }
	return []fault{
		{"line severed", func() int {
			m := any()
			defer heal(t, m.line)
			return cut(t, m.line)
		}},
		{"line down", func() int {
			m := any()
			defer heal(t, m.line)
			defer rest(t.Context(), time.Duration(50+rng.IntN(400))*time.Millisecond)
			return cut(t, m.line)
		}},
		{"connections ended by the database", func() int { return sever(t, n.pg) }},
		{"database stopped", func() int {
			n.pg.StopImmediate(t)
			n.pg.Start(t)
			return 1
		}},
		{"node killed", func() int {
			m := any()
			broken := cut(t, m.line) // all that the database notices of it
			m.ledger.Load().Close()
			heal(t, m.line)
			eventually(t, "a node opens on a line that breaks", func() error { return m.open(t) })
			return broken
		}},
	}
}

func (n *nodes) lines() (lines []*servers.TCPProxy) {
	for _, m := range n.members {
		lines = append(lines, m.line)
	}
	return lines
}

// agree checks that totals are the number of facts, and were at one point of the
// history also before they were drained.
func (n *nodes) agree(t *testing.T) {
	l := n.members[0].ledger.Load()
	facts := map[like.Item]int64{}
	eventually(t, "an audit of everything", func() error {
		for a, err := range l.AuditAll(t.Context(), false) {
			if err != nil {
				return err
			}
			if a.Drift() {
				t.Errorf("drift: %+v", a)
			}
			facts[a.Item] = a.Facts
		}
		return nil
	})
	for k, m := range n.members {
		eventually(t, fmt.Sprint("totals of node ", k, " are the number of facts"), func() error {
			totals, err := m.ledger.Load().Totals(t.Context(), items)
			for _, total := range totals {
				if total.Count != facts[total.Item] {
					err = errors.Join(err, fmt.Errorf("total %+v of %d facts", total, facts[total.Item]))
				}
			}
			return err
		})
	}
}

// eventually polls until try succeeds.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last error
	err := harness.Poll(ctx, 10*time.Millisecond, func() (bool, error) {
		last = try()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("not in time: %s: %v", what, last)
	}
}

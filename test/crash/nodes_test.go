package crash

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"likewise/test/harness"
	"likewise/test/servers"
)

// service is two nodes under load, with a database and a Redis that tests may harm.
type service struct {
	*testing.T
	database *servers.PostgresServer
	redis    *servers.RedisServer
	nodes    harness.Nodes
	client   *harness.Client
	load     *load
	checker  *harness.Checker
	choices  *rand.Rand
}

func newService(t *testing.T, redis *servers.RedisServer) *service {
	seed := setting(t, "LIKEWISE_SEED", rand.Uint64()>>1)
	t.Logf("LIKEWISE_SEED=%d", seed)
	keys, database := harness.NewKeys(t), servers.Postgres(t)
	nodes := harness.NewNodes(t, 2, harness.NodeConfig{Keys: keys, Flags: []string{
		"--ledger", database.URL(), "--redis", redis.URL(), "--postgres-queue-age", "20s", "--limits-address-rate", "0",
		// No limit, and yet Redis is asked for one.
		"--limits-user-rate", "1000000", "--limits-user-burst", "1000000",
	}})
	nodes.StartReady(t.Context())
	client := nodes.Client(keys)
	t.Cleanup(client.Close)
	s := &service{
		T: t, database: database, redis: redis, nodes: nodes, client: client,
		load:    &load{Recorder: harness.Recorder{Client: client, Acks: harness.NewAcks()}},
		choices: rand.New(rand.NewPCG(seed, 0)),
	}
	s.checker = &harness.Checker{Client: client, Acks: s.load.Acks, Within: 30 * time.Second}
	return s
}

// patience is how long anything may take that is waited for, on a slow machine.
const patience = 2 * time.Minute

// fault is something that happens to a service under load.
type fault struct {
	name   string
	rounds int
	// strike does it, and undoes it unless that needs the end of the load. It returns
	// a number that says that something was hit.
	strike func(s *service) (hit int)
	// fails says that answers of 5xx are right meanwhile.
	fails bool
	// dead says that no process is left.
	dead bool
}

// TestTwoNodes harms two nodes and what they share, one kind after the other.
func TestTwoNodes(t *testing.T) {
	s := newService(t, servers.Redis(t))
	for _, f := range []fault{
		{name: "both nodes killed", rounds: harness.Size(1, 30), strike: (*service).killNodes, dead: true},
		{name: "database stopped at once", rounds: harness.Size(1, 3), strike: (*service).stopDatabase, fails: true},
		{name: "database killed", rounds: harness.Size(1, 3), strike: (*service).killDatabase, fails: true},
		{name: "connections cut", rounds: harness.Size(1, 5), strike: (*service).cutConnections, fails: true},
		{name: "Redis killed", rounds: harness.Size(1, 3), strike: (*service).killRedis},
	} {
		s.suffer(f)
	}
	s.end()
}

// TestRedisFailover kills primaries, after each of which a replica takes over.
func TestRedisFailover(t *testing.T) {
	harness.SkipUnlessHeavy(t, "a Redis Cluster needs seconds to see that a primary is gone")
	s := newService(t, servers.RedisCluster(t, servers.WithReplicas))
	s.suffer(fault{name: "primary killed", rounds: 2, strike: (*service).killPrimary})
	s.end()
}

// suffer lets a fault happen again and again, and checks everything each time.
func (s *service) suffer(f fault) {
	began, acked, failed, hits := time.Now(), s.load.Acks.Acked(), s.client.Answers(5), 0
	for round := range f.rounds {
		stop := s.load.start(s.Context(), s.choices.Uint64())
		s.await(harness.Size[int64](100, 1000))
		s.pause(0, harness.Size(200, 500))
		hit := f.strike(s)
		stop()
		if f.dead {
			servers.Quiet(s.T, s.database.URL())
			hit = s.load.Acks.Died()
			s.client.Close()
			s.nodes.StartReady(s.Context())
		}
		if hits += hit; hit == 0 {
			s.Errorf("%s, round %d: nothing was hit", f.name, round)
		}
		if err := s.checker.Check(s.Context()); err != nil {
			s.Fatalf("%s, round %d: %v", f.name, round, err)
		}
	}
	acked, failed = s.load.Acks.Acked()-acked, s.client.Answers(5)-failed
	if failed > 0 && !f.fails {
		s.Errorf("%s: %d answers of 5xx", f.name, failed)
	}
	s.Logf("%s %d times, hits %d: %d acknowledged, %d refused, in %v", f.name, f.rounds, hits, acked, failed, time.Since(began))
}

// end stops the nodes, starts them again, and checks everything once more, now that
// nothing unanswered can happen any more.
func (s *service) end() {
	s.nodes.Stop()
	s.load.Acks.Died()
	s.client.Close()
	s.nodes.StartReady(s.Context())
	if err := s.checker.Check(s.Context()); err != nil {
		s.Fatalf("after a restart: %v", err)
	}
	s.nodes.Stop()
}

// await waits until so many more operations were acknowledged.
func (s *service) await(more int64) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	enough := s.load.Acks.Acked() + more
	err := harness.Poll(ctx, time.Millisecond, func() (bool, error) { return s.load.Acks.Acked() >= enough, nil })
	if err != nil {
		s.Fatalf("%d operations acknowledged, want %d: %v", s.load.Acks.Acked(), enough, err)
	}
}

// pause lets the load go on for a random time between two numbers of milliseconds.
func (s *service) pause(least, most int) {
	<-time.After(time.Duration(least+s.choices.IntN(most-least)) * time.Millisecond)
}

func (s *service) killNodes() int {
	s.nodes.Kill()
	return 0 // known when the load has ended
}

func (s *service) stopDatabase() int { return s.without(s.database.StopImmediate) }
func (s *service) killDatabase() int { return s.without(s.database.Kill9) }

// without takes the database away for a moment, and returns how many transactions
// that broke.
func (s *service) without(stop func(testing.TB)) int {
	before := s.broken()
	stop(s.T)
	s.pause(100, 600)
	s.database.Start(s.T)
	s.await(100) // by itself
	return s.broken() - before
}

// cutConnections cuts all connections to the database, again and again.
func (s *service) cutConnections() int {
	before := s.broken()
	for range harness.Size(5, 20) {
		s.database.Sever(s.T)
		s.pause(20, 200)
	}
	return s.broken() - before
}

// broken returns the number of transactions that were rolled back by a failure, or
// whose COMMIT was not answered.
func (s *service) broken() int {
	return s.metric("likewise_ledger_retries_total") + s.metric("likewise_ledger_unanswered_commits_total")
}

func (s *service) metric(name string) int {
	s.Helper()
	n, err := s.client.Metric(s.Context(), name)
	if err != nil {
		s.Fatal(err)
	}
	return int(n)
}

// killRedis takes Redis away until both nodes have noticed, and returns how many
// have.
func (s *service) killRedis() int {
	s.redis.Kill(s.T, 0)
	s.awaitRedis(0)
	s.pause(100, 500)
	s.redis.Start(s.T, 0)
	s.awaitRedis(len(s.nodes))
	s.await(100)
	return len(s.nodes)
}

// killPrimary kills one of the servers that began as primaries, waits until a replica
// has replaced it where it is one still, and starts it again as the replica of that one.
func (s *service) killPrimary() int {
	const apart = 3 // a node and its replica
	primary := s.choices.IntN(apart)
	s.redis.Kill(s.T, primary)
	s.awaitRedis(0)
	s.awaitRedis(len(s.nodes))
	s.redis.Start(s.T, primary)
	return len(s.nodes)
}

// awaitRedis waits until Redis works for so many nodes.
func (s *service) awaitRedis(nodes int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	err := harness.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		return s.metric("likewise_redis_up") == nodes, nil
	})
	if err != nil {
		s.Fatalf("Redis does not come to work for %d nodes: %v", nodes, err)
	}
}

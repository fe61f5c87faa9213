package linearizable

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/test/harness"
	"likewise/test/servers"
)

// remote is a process of the program.
type remote struct{ client *harness.Client }

func (r remote) Apply(ctx context.Context, cmd like.Command) (ack ledger.Ack, err error) {
	ask := harness.Request{Method: http.MethodPut, Path: harness.Item(cmd.Item).Path("like"), User: string(cmd.User)}
	if cmd.Op == like.OpUnlike {
		ask.Method = http.MethodDelete
	}
	res, err := r.client.Do(ctx, ask)
	if err == nil && res.Status != http.StatusOK {
		err = harness.ProblemOf(ask, res)
	}
	if err != nil {
		return ledger.Ack{}, err
	}
	var answer harness.LikeState
	err = harness.Decode(res.Body, &answer)
	return ledger.Ack{State: like.State{Liked: answer.Liked}, Count: answer.Count}, err
}

func (r remote) Liked(ctx context.Context, user like.User, of []like.Item) ([]like.State, error) {
	names := make([]harness.Item, len(of))
	for k, item := range of {
		names[k] = harness.Item(item)
	}
	counts, err := r.client.Counts(ctx, string(user), names...)
	states := make([]like.State, len(counts))
	for k, count := range counts {
		states[k].Liked = count.Mine()
		if states[k].Liked && count.Count < 1 {
			err = fmt.Errorf("count %d of a liked item", count.Count)
		}
	}
	return states, err
}

func (r remote) LikedBy(ctx context.Context, user like.User, _ like.Fact, n int) (page ledger.Page, err error) {
	list, err := r.client.MyLikes(ctx, string(user), "", n)
	for _, l := range list.Likes {
		page.Facts = append(page.Facts, like.Fact{Item: like.Item(l.Item), User: user, Since: like.StampOf(l.LikedAt)})
	}
	return page, err
}

// TestProcesses has three processes share a database and a Redis, while either and
// the processes themselves break.
func TestProcesses(t *testing.T) {
	harness.SkipUnlessHeavy(t, "three processes and their servers take seconds to start")
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	pg, cache, keys := servers.Postgres(t), servers.Redis(t), harness.NewKeys(t)
	database := pg.Database(t)
	var lines []*servers.TCPProxy
	var members []*harness.Node
	var clients []remote
	for range 3 {
		line := servers.Proxy(t, database)
		m := harness.NewNode(t, harness.NodeConfig{Keys: keys, Flags: []string{
			"--ledger", line.URL(), "--redis", cache.URL(), "--limits-user-rate", "0", "--limits-address-rate", "0",
		}})
		m.Use(harness.Binary(t), "--postgres-queue-age", "1s")
		m.StartReady(t.Context())
		client := harness.NewClient([]string{m.URL}, []string{m.AdminURL}, keys)
		t.Cleanup(client.Close)
		breakCommits(line)
		lines, members, clients = append(lines, line), append(members, m), append(clients, remote{client})
	}
	work := &load{seed: seed, enough: 40, pick: func(rng *rand.Rand) (int, node) {
		k := rng.IntN(len(clients))
		return k, clients[k]
	}}
	work.start(t)
	breakAll(t, rng, []fault{
		{"connections ended by the database", func() int { return sever(t, pg) }},
		{"database stopped", func() int {
			pg.StopImmediate(t)
			pg.Start(t)
			return 1
		}},
		{"Redis killed", func() int {
			cache.Kill(t, 0)
			cache.Start(t, 0)
			return 1
		}},
		{"line severed", func() int {
			line := lines[rng.IntN(len(lines))]
			defer heal(t, line)
			return cut(t, line)
		}},
		{"node killed", func() int {
			m := members[rng.IntN(len(members))]
			m.Kill()
			m.StartReady(t.Context())
			return 1
		}},
	}, 3)
	work.stop(t)
	commitsBroke(t, lines)
	for _, m := range members {
		m.Stop()
	}
}

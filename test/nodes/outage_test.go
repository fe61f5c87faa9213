package nodes

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"likewise/test/harness"
	"likewise/test/servers"
)

// TestDatabaseDown takes the database away for a while. Likes are refused soon and
// say when to come back, numbers that were read lately are shown with their age, and
// everything goes on by itself.
func TestDatabaseDown(t *testing.T) {
	harness.SkipUnlessHeavy(t, "it waits for an outage to pass")
	away, patience := harness.Size(2*time.Second, time.Minute), time.Second
	db := servers.Postgres(t)
	c := start(t, 2, db.URL(), servers.Redis(t).URL(), "--postgres-queue-age", patience.String(), "--counts-refresh-after", "200ms", "--counts-expire-after", "3m")
	item, fans := harness.Post("1"), 20
	for k := range fans {
		_, err := c.set(fmt.Sprint("fan-", k), item, true)
		c.must(err)
	}
	c.showsSoon(item, int64(fans))

	db.StopImmediate(t)
	refused, aged, took := 0, 0, []time.Duration(nil)
	for begin := time.Now(); time.Since(begin) < away; {
		asked := time.Now()
		_, err := c.set(fmt.Sprint("late-", refused), item, true)
		took = append(took, time.Since(asked))
		problem, ok := errors.AsType[*harness.Problem](err)
		if !ok || problem.Status != http.StatusServiceUnavailable || problem.Code == "" || problem.RetryAfter() < 1 {
			t.Fatalf("a like without a database: %v, want a 503 as a problem document with Retry-After", err)
		}
		refused++
		for _, node := range c.each {
			counts, err := node.Counts(t.Context(), "", item)
			if err != nil || counts[0].Count != int64(fans) {
				t.Fatalf("a count without a database: %+v, %v, want %d", counts, err, fans)
			}
			if counts[0].AgeMS > 0 {
				aged++
			}
		}
	}
	for k, n := range c.nodes {
		if n.Ready(t.Context()) {
			t.Errorf("node %d says that it is ready without a database", k+1)
		}
	}
	slices.Sort(took)
	usual, slowest := took[len(took)*3/4], took[len(took)-1]
	t.Logf("%d likes refused, most within %v, all within %v; %d counts with an age", refused, usual, slowest, aged)
	// Others use the machine too.
	if most := patience + 2*time.Second; usual > most || slowest > 4*most || aged == 0 {
		t.Errorf("refusals took %v and up to %v, want %v; %d counts had an age", usual, slowest, most, aged)
	}

	db.Start(t)
	c.within(soon, "likes go on", func() (bool, error) {
		_, err := c.set("early", item, true)
		return err == nil, nil
	})
	c.nodes.WaitReady(t.Context())
	c.check()
}

// TestTotalThatRedisMissed moves a total through a node that does not reach Redis, as
// one does that dies before it has told: what Redis still has must not be shown for
// long.
func TestTotalThatRedisMissed(t *testing.T) {
	harness.SkipUnlessHeavy(t, "it waits for an outage to pass")
	redis, ledger := servers.Redis(t).URL(), servers.Database(t)
	c := start(t, 2, ledger, redis)
	item := harness.Post("1")
	_, err := c.set("first", item, true)
	c.must(err)
	c.showsSoon(item, 1) // and so Redis has it
	c.nodes.Kill()
	servers.Quiet(t, ledger)
	c.client.Close()

	alone := start(t, 1, ledger, "")
	alone.acks = c.acks
	_, err = alone.set("second", item, true)
	alone.must(err)
	alone.showsSoon(item, 2)
	alone.nodes.Kill()
	servers.Quiet(t, ledger)

	c.nodes.StartReady(t.Context())
	c.showsWithin(5*time.Second, item, 2) // Redis keeps a total for 2 s
	c.check()
}

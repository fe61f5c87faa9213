package postgres

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/test/servers"
)

// Connections die at COMMIT, before and behind it, under load from two nodes: every
// command is acknowledged, and applied once.
func TestConnectionsDieAtCommit(t *testing.T) {
	t.Parallel()
	seed := testSeed(t)
	rng, mu := rand.New(rand.NewPCG(seed, 1)), sync.Mutex{}
	proxy := servers.Proxy(t, servers.Database(t))
	both := openNodes(t, testConfig(proxy.URL()), 2)
	apply(t, both, like.Command{Item: post("warm"), User: "u", Op: like.OpLike}) // an era begins
	apply(t, both, like.Command{Item: post("warm"), User: "u", Op: like.OpUnlike})
	proxy.OnCommit(func() servers.CommitFault {
		mu.Lock()
		defer mu.Unlock()
		switch rng.IntN(8) {
		case 0:
			return servers.CommitLost
		case 1:
			return servers.AnswerLost
		}
		return servers.NoFault
	})
	l := startLoad(t, seed, 12, both.all...)
	faults := func() bool {
		return min(proxy.Fired(servers.CommitLost), proxy.Fired(servers.AnswerLost)) >= sized(15, 300)
	}
	eventually(t, "faults", func() bool { return faults() || t.Failed() })
	proxy.OnCommit(nil)
	l.finish()
	if l.failed.Load() != 0 {
		t.Errorf("%d commands were refused", l.failed.Load())
	}
	var asked, again uint64
	for _, n := range both.all {
		asked, again = asked+n.Stats().Unanswered, again+n.Stats().Retries
	}
	if asked == 0 || again == 0 {
		t.Errorf("%d transactions were asked for, %d tried again", asked, again)
	}
}

// A like commits, its answer is lost, and through another node the user unlikes before
// the first node has found out: it must not like again.
func TestLostAnswerDoesNotLikeAgain(t *testing.T) {
	t.Parallel()
	url := servers.Database(t)
	proxy := servers.Proxy(t, url)
	slow, direct := openTest(t, testConfig(proxy.URL())), openTest(t, testConfig(url))
	apply(t, slow, like.Command{Item: post("warm"), User: "u", Op: like.OpLike}) // an era begins
	item := post("1")
	var once sync.Once
	proxy.OnCommit(func() (fault servers.CommitFault) {
		once.Do(func() {
			proxy.Delay(time.Second) // so that the question comes late
			fault = servers.AnswerLost
		})
		return fault
	})
	answer := make(chan ledger.Ack, 1)
	var waits sync.WaitGroup
	defer waits.Wait()
	waits.Go(func() {
		ack, err := slow.Apply(t.Context(), like.Command{Item: item, User: "u", Op: like.OpLike})
		if err != nil {
			t.Error(err)
		}
		answer <- ack
	})
	eventually(t, "the like is there", func() bool {
		states, err := direct.Liked(t.Context(), "u", []like.Item{item})
		return err == nil && states[0].Liked
	})
	apply(t, direct, like.Command{Item: item, User: "u", Op: like.OpUnlike})
	select {
	case <-answer:
		t.Fatal("the answer was not lost for long enough")
	default:
	}
	proxy.Delay(0)
	ack := <-answer
	if proxy.Fired(servers.AnswerLost) != 1 || slow.Stats().Unanswered != 1 {
		t.Errorf("the answer was lost %d times, and asked for %d times", proxy.Fired(servers.AnswerLost), slow.Stats().Unanswered)
	}
	if !ack.State.Liked || ack.Count != 1 {
		t.Errorf("acknowledged with %+v", ack)
	}
	states, err := direct.Liked(t.Context(), "u", []like.Item{item})
	if err != nil || states[0].Liked {
		t.Errorf("liked again behind the unlike: %+v, %v", states, err)
	}
	totalIs(t, direct, item, 0)
	if drifted := drift(t, direct); drifted != nil {
		t.Errorf("drift: %+v", drifted)
	}
}

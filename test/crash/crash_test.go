// Package crash kills the running program, and the servers that several nodes of it
// share, again and again in the middle of load, and checks each time that nothing
// acknowledged was lost, nothing was half done and nothing was counted twice.
//
// LIKEWISE_KILLS sets the number of kills; LIKEWISE_SEED repeats the choices of
// an earlier run (not its timing).
package crash

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const target = 100_000 // acknowledgements of a full run

// setting reads a number from the environment.
func setting[T int | uint64](t *testing.T, name string, otherwise T) T {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return T(n)
}

func TestKillsUnderLoad(t *testing.T) {
	kills := setting(t, "LIKEWISE_KILLS", harness.Size(3, 100))
	seed := setting(t, "LIKEWISE_SEED", rand.Uint64()>>1)
	t.Logf("LIKEWISE_SEED=%d LIKEWISE_KILLS=%d", seed, kills)
	choices := rand.New(rand.NewPCG(seed, 0))

	keys := harness.NewKeys(t)
	node := harness.NewNode(t, harness.NodeConfig{
		Keys: keys, Flags: []string{"--limits-user-rate", "0", "--limits-address-rate", "0"},
	})
	client := harness.NewClient([]string{node.URL}, []string{node.AdminURL}, keys)
	defer client.Close()
	load := &load{Recorder: harness.Recorder{Client: client, Acks: harness.NewAcks()}}
	checker := &harness.Checker{Client: client, Acks: load.Acks, Within: 30 * time.Second}

	node.StartReady(t.Context())
	var unanswered, enough int64 = 0, harness.Size(int64(kills)*10, target)
	for kill := 0; kill < kills || load.Acks.Acked() < enough; kill++ {
		before := load.Acks.Acked()
		stop := load.start(t.Context(), choices.Uint64())
		<-time.After(time.Duration(50+choices.IntN(harness.Size(200, 500))) * time.Millisecond)
		node.Kill()
		stop()
		cut := load.Acks.Died()
		if unanswered += int64(cut); cut == 0 {
			t.Errorf("kill %d hit no request under way", kill)
		}
		client.Close()
		ready := node.StartReady(t.Context())
		if err := checker.Check(t.Context()); err != nil {
			t.Fatalf("after kill %d: %v\n%s", kill, err, node.LogTail())
		}
		t.Logf("kill %d: %d acknowledged, %d cut off, ready again after %v", kill, load.Acks.Acked()-before, cut, ready)
	}
	if n := client.Answers(5); n > 0 {
		t.Errorf("%d answers of 5xx", n)
	}
	out, errs, code := harness.CLI(t.Context(), t, "reconcile", "--admin-url", node.AdminURL,
		"--token", keys.Token("operator", harness.ScopeAdmin))
	if code != 0 {
		t.Errorf("reconcile ended with %d\n%s%s", code, out, errs)
	}
	node.Stop()
	t.Logf("%d acknowledged, %d cut off by %d kills", load.Acks.Acked(), unanswered, kills)
}

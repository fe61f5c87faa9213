package scenarios

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func TestEmbedded(t *testing.T) { Run(t, Embedded) }

// TestTwoNodes sends every request to the other of two nodes. The fast tests play
// only what nodes could disagree about.
func TestTwoNodes(t *testing.T) {
	if harness.Heavy() {
		RunSmall(t, TwoNodes(t))
		return
	}
	RunSmall(t, TwoNodes(t), "B01", "B03", "B05", "B06", "B08", "B20", "B32", "B35")
}

// TestFirstStart is what a person meets first: a server that nobody configured,
// and the command that makes a token for it.
func TestFirstStart(t *testing.T) {
	node := harness.NewNode(t, harness.NodeConfig{})
	node.StartReady(t.Context())
	token, errs, code := harness.CLI(t.Context(), t, "token", "alice", "--data-dir", node.DataDir)
	if code != 0 || strings.ContainsAny(strings.TrimSuffix(token, "\n"), " \n") {
		t.Fatalf("token ended with %d and printed %q\n%s", code, token, errs)
	}
	client := harness.NewClient([]string{node.URL}, []string{node.AdminURL}, nil)
	defer client.Close()
	post := harness.Post("1")
	for range 2 { // the key is still the same after a restart
		r := harness.Request{Method: http.MethodPut, Path: post.Path("like"), Token: strings.TrimSpace(token)}
		res, err := client.Do(t.Context(), r)
		if err != nil || res.Status != http.StatusOK {
			t.Fatalf("like: %d %s, %v", res.Status, res.Body, err)
		}
		counts, err := client.Counts(t.Context(), "", post)
		if err != nil || counts[0].Count != 1 {
			t.Fatalf("counts %+v, %v, want 1", counts, err)
		}
		if out, errs, code := harness.CLI(t.Context(), t, "healthcheck", "--admin-url", node.AdminURL); code != 0 {
			t.Fatalf("healthcheck ended with %d: %s%s", code, out, errs)
		}
		client.Close()
		node.Restart(t.Context())
	}
}

// TestRunning plays against a service that runs already, and knows nothing of it
// but what the environment says: a deployment that others made, or else a server
// that all scenarios share.
func TestRunning(t *testing.T) {
	if os.Getenv(TargetEnv) != "" {
		Run(t, Running(os.Getenv))
		return
	}
	if harness.Heavy() {
		t.Skipf("skipped: no running service named by %s; the fast tests start one", TargetEnv)
	}
	keys := harness.NewKeys(t)
	node := harness.NewNode(t, harness.NodeConfig{Keys: keys, Flags: noLimits})
	node.StartReady(t.Context())
	env := map[string]string{TargetEnv: node.URL, TargetAdminEnv: node.AdminURL, TargetSecretEnv: keys.File}
	Run(t, Running(func(name string) string { return env[name] }))
}

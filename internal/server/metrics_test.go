package server

import (
	"flag"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/auth"
	"likewise/internal/ledger/memory"
	"likewise/internal/ledger/postgres"
	"likewise/internal/mirror"
	"likewise/internal/observe"
	"likewise/internal/redis"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

const metricsHead = `# Metrics

<!-- Generated from a running server; rewrite with: go test ./internal/server -update -->

` + "`GET /metrics` of the admin listener" + `, in the Prometheus text or OpenMetrics format. Beside these there are the usual
` + "`go_` and `process_`" + ` metrics of every Go program. No label ever holds an item or a user.

Worth an alert: any increase of ` + "`likewise_drift_found_total` or `likewise_http_panics_total`" + ` (a bug), a growing
` + "`likewise_queue_age_seconds`" + ` (the disk does not keep up), a small ` + "`likewise_disk_free_bytes`" + `, and the high percentiles of
` + "`likewise_http_request_seconds`" + `.

`

func TestMetricsAreDocumented(t *testing.T) {
	r := start(t, testConfig(t), testOptions())
	// One request for each vector that has no value before the first.
	r.want(200, "", "PUT", r.api+"/v1/posts/1/like", r.token("ann"), "")
	r.want(200, "", "POST", r.admin+"/admin/v1/reconcile", r.token("op", auth.ScopeAdmin), "")
	own, err := r.registry.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	table := union(own, sharedMetrics(t))
	path, text := filepath.Join("..", "..", "docs", "metrics.md"), metricsHead+table
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), text); diff != "" {
		t.Errorf("docs/metrics.md is not what the server has; rewrite it with -update (-file +server):\n%s", diff)
	}
}

// sharedMetrics is the table of what a server with a shared ledger and Redis has
// besides. Neither has to be there for it.
func sharedMetrics(t *testing.T) string {
	t.Helper()
	registry := observe.NewRegistry(observe.Build{})
	registry.MustRegister(newPostgresCollector(func() postgres.Stats { return postgres.Stats{} }))
	shared, err := redis.Open(redis.Config{URL: "redis://127.0.0.1:1", Prefix: "p", TTL: time.Second, Timeout: time.Second}, slog.New(slog.DiscardHandler), registry)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	facts := memory.New(memory.Config{})
	defer facts.Close()
	copies := mirror.DefaultConfig()
	copies.Tables = map[string]mirror.Table{"posts": {URL: "postgres://127.0.0.1:1/app", Name: "posts", IDColumn: "id", CountColumn: "likes"}}
	if _, err := mirror.New(facts, facts, copies, registry, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	table, err := registry.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// union is the table with the rows of both, a row for each metric.
func union(a, b string) string {
	head, rows := a[:strings.Index(a, "| `")], map[string]string{}
	for row := range strings.Lines(b + a) {
		if strings.HasPrefix(row, "| `") {
			name, _, _ := strings.Cut(row, " |")
			rows[name] = row
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		head += rows[name]
	}
	return head
}

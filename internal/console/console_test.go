package console

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"

	"likewise/internal/hot"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/internal/reconcile"
)

type hotItems []hot.Item

func (h hotItems) Top(n int) []hot.Item { return h[:min(n, len(h))] }

type runs []reconcile.Run

func (r runs) Runs() []reconcile.Run { return r }

func newConsole(t *testing.T, reg prometheus.Gatherer) (*Console, *memory.Ledger) {
	t.Helper()
	l := memory.New(memory.Config{})
	t.Cleanup(func() { l.Close() })
	ended := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	return New(Deps{
		Version: "test", Metrics: reg, Ledger: l,
		Hot: hotItems{{Item: like.Item{Collection: "posts", ID: "1"}, PerSecond: 2.5, Count: 7}},
		Audits: runs{
			{Ended: ended, Took: time.Second, Items: 3, Drifted: 2, Repaired: 1}, {Ended: ended.Add(time.Hour), Items: 4},
		},
		Checks: map[string]func(context.Context) error{
			"tokens": func(context.Context) error { return nil },
			"ledger": func(context.Context) error { return errors.New("the disk is full") },
		},
	}), l
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		counter := func(name string, value float64, labels ...string) {
			pairs := prometheus.Labels{}
			for i := 0; i < len(labels); i += 2 {
				pairs[labels[i]] = labels[i+1]
			}
			promauto.With(reg).NewCounter(prometheus.CounterOpts{Name: name, ConstLabels: pairs}).Add(value)
		}
		counter("likewise_commands_total", 10)
		for _, labels := range [][]string{{"api", "public", "code", "429"}, {"api", "public", "code", "401"}, {"api", "public", "code", "200"}, {"api", "admin", "code", "404"}} {
			counter("likewise_http_requests_total", 3, labels...)
		}
		counter("likewise_counts_reads_total", 40, "tier", "l1")
		counter("likewise_counts_reads_total", 5, "tier", "ledger")
		counter("likewise_live_clients", 6, "transport", "sse")
		counter("likewise_live_clients", 7, "transport", "sse_plain")
		counter("likewise_live_clients", 8, "transport", "websocket")
		counter("likewise_queue_age_seconds", 0.25)
		counter("likewise_drift_found_total", 2)
		seconds := promauto.With(reg).NewHistogramVec(prometheus.HistogramOpts{Name: requestSeconds, Buckets: []float64{.002, .004}}, []string{"route"})
		seconds.WithLabelValues("PUT /v1/{collection}/{id}/like").Observe(.003)
		seconds.WithLabelValues("DELETE /v1/{collection}/{id}/like").Observe(.001)
		seconds.WithLabelValues("GET /v1/{collection}/{id}/like").Observe(10)

		c, _ := newConsole(t, reg)
		time.Sleep(90 * time.Second)
		got, err := c.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := Stats{
			Time: stamp(time.Now()), Version: "test", UptimeS: 90, Likes: -1, Commands: 10, Refused: 6,
			WriteP50MS: 2, WriteP99MS: got.WriteP99MS, QueueAgeMS: 250, FromL1: 40, FromLedger: 5,
			Live: LiveClients{SSE: 13, WS: 8}, Drift: 2,
			Hot:    []HotItem{{"posts", "1", 2.5, 7}},
			Audits: []Audit{{"2026-01-02T04:04:05.006Z", 4, 0, 0, 0}, {"2026-01-02T03:04:05.006Z", 3, 2, 1, 1000}},
			Ready:  []Check{{"ledger", false, "the disk is full"}, {"tokens", true, "ok"}},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
		if got.WriteP99MS < 3.9 || got.WriteP99MS > 4 {
			t.Errorf("p99 %v ms", got.WriteP99MS)
		}

		// Where nobody writes over HTTP, commits tell.
		commits := promauto.With(reg).NewHistogram(prometheus.HistogramOpts{Name: commitSeconds, Buckets: []float64{.01, .02}})
		commits.Observe(.015)
		c.d.Likes = func() int64 { return 5 }
		time.Sleep(time.Second)
		if got, err = c.Stats(t.Context()); err != nil || got.WriteP50MS != 15 || got.Likes != 5 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestMetricsThatFail(t *testing.T) {
	broken := errors.New("broken")
	c, _ := newConsole(t, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, broken }))
	if _, err := c.Stats(t.Context()); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestLookUps(t *testing.T) {
	c, l := newConsole(t, prometheus.NewRegistry())
	item := like.Item{Collection: "posts", ID: "1"}
	for i := range 25 {
		cmd := like.Command{Op: like.OpLike, Item: item, User: like.User(strings.Repeat("u", i+1))}
		if _, err := l.Apply(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	found, err := c.Item(t.Context(), item)
	if err != nil || found.Total != 25 || found.Version == "0" || len(found.Likers) != rows || found.Likers[0].User != like.User(strings.Repeat("u", 25)) {
		t.Errorf("%+v, %v", found, err)
	}
	user, err := c.User(t.Context(), "u")
	if err != nil || len(user.Likes) != 1 || user.Likes[0].ID != "1" || user.Likes[0].LikedAt == "" {
		t.Errorf("%+v, %v", user, err)
	}
	if nobody, err := c.User(t.Context(), "nobody"); err != nil || nobody.Likes == nil || len(nobody.Likes) != 0 {
		t.Errorf("%+v, %v", nobody, err)
	}
	l.Close()
	if _, err := c.Item(t.Context(), item); !errors.Is(err, like.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := c.User(t.Context(), "u"); !errors.Is(err, like.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

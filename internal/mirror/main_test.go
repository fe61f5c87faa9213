package mirror

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/test/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for what a loaded machine may take; nothing waits for it in vain.
const patience = 30 * time.Second

// application is the application's database.
type application struct {
	t    testing.TB
	url  string
	conn *pgx.Conn
}

func newApplication(t testing.TB, statements ...string) *application {
	t.Helper()
	return connected(t, servers.Database(t), statements...)
}

func connected(t testing.TB, url string, statements ...string) *application {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	a := &application{t, url, conn}
	for _, statement := range statements {
		a.exec(statement)
	}
	return a
}

func (a *application) exec(statement string, args ...any) {
	a.t.Helper()
	if _, err := a.conn.Exec(a.t.Context(), statement, args...); err != nil {
		a.t.Fatalf("%s: %v", statement, err)
	}
}

// get returns the one value that a query gives.
func get[T any](a *application, query string, args ...any) (value T) {
	a.t.Helper()
	if err := a.conn.QueryRow(a.t.Context(), query, args...).Scan(&value); err != nil {
		a.t.Fatalf("%s: %v", query, err)
	}
	return value
}

// posts is a table as applications have it.
const posts = `CREATE TABLE posts (id bigint PRIMARY KEY, title text NOT NULL DEFAULT 'x', like_count bigint NOT NULL DEFAULT 0)`

func (a *application) table() Table {
	return Table{URL: a.url, Name: "posts", IDColumn: "id", CountColumn: "like_count"}
}

func item(id string) like.Item { return like.Item{Collection: "posts", ID: id} }

// likes has n users like an item.
func likes(t testing.TB, w ledger.Writer, id string, n int) {
	t.Helper()
	for k := range n {
		if _, err := w.Apply(t.Context(), like.Command{Item: item(id), User: like.User(fmt.Sprint("u", k)), Op: like.OpLike}); err != nil {
			t.Fatal(err)
		}
	}
}

func newLedger(t testing.TB, cfg memory.Config) *memory.Ledger {
	l := memory.New(cfg)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// fast returns settings with which nothing has to be waited for.
func fast(table Table) Config {
	cfg := DefaultConfig()
	cfg.Interval, cfg.Share, cfg.Tables = 10*time.Millisecond, 1, map[string]Table{"posts": table}
	return cfg
}

// running is a mirror under way.
type running struct {
	*Mirror
	t   testing.TB
	log *strings.Builder
	mu  *sync.Mutex
	end func() // waits for the end; also called when the test ends
}

func run(t testing.TB, f ledger.Feeder, r ledger.Reader, cfg Config) *running {
	t.Helper()
	x := &running{t: t, log: &strings.Builder{}, mu: &sync.Mutex{}}
	log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.log.Write(p)
	}), nil))
	m, err := New(f, r, cfg, prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	x.Mirror = m
	x.end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the mirror ended with %v", err)
		}
	})
	t.Cleanup(func() {
		x.end()
		if t.Failed() {
			t.Logf("the mirror's log: %s", x.log)
		}
	})
	return x
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

var _ io.Writer = writerFunc(nil)

func (x *running) said(text string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Count(x.log.String(), text)
}

func (x *running) posts() *column { return x.columns["posts"] }

// swept waits until n sweeps have ended.
func (x *running) swept() {
	x.t.Helper()
	eventually(x.t, "a sweep ends", func() bool { return value(x.posts().metrics.sweptAt) > 0 })
}

func value(metric prometheus.Metric) float64 {
	var m dto.Metric
	if err := metric.Write(&m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

// soon reports whether something becomes true within patience.
func soon(t testing.TB, ok func() bool) bool {
	end := time.NewTimer(patience)
	defer end.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-end.C:
			return false
		case <-t.Context().Done():
			return false
		case <-again.C:
		}
	}
	return true
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !soon(t, ok) {
		t.Fatalf("not within %v: %s", patience, what)
	}
}

// counts reads the mirrored column of a table.
func (a *application) counts(table, id, count string) map[string]int64 {
	a.t.Helper()
	rows, err := a.conn.Query(a.t.Context(), fmt.Sprintf("SELECT %s::text, %s::bigint FROM %s", id, count, table))
	if err != nil {
		a.t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]int64{}
	for rows.Next() {
		var id string
		var n *int64
		if err := rows.Scan(&id, &n); err != nil {
			a.t.Fatal(err)
		}
		found[id] = -1
		if n != nil {
			found[id] = *n
		}
	}
	if err := rows.Err(); err != nil {
		a.t.Fatal(err)
	}
	return found
}

// become waits until the column of posts is as wanted.
func (a *application) become(want map[string]int64) {
	a.t.Helper()
	var got map[string]int64
	if soon(a.t, func() bool {
		got = a.counts("posts", "id", "like_count")
		return maps.Equal(got, want)
	}) {
		return
	}
	a.t.Fatalf("not within %v (-want +got):\n%s", patience, cmp.Diff(want, got))
}
func sanitize(name string) string { return pgx.Identifier{name}.Sanitize() }

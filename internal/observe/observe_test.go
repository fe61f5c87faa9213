package observe

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLoggerFormats(t *testing.T) {
	ctx := WithRequestID(t.Context(), "r-7")
	for format, want := range map[string]string{
		"text": `level=WARN msg=hello component=x g.a=1 g.request_id=r-7`,
		"json": `"level":"WARN","msg":"hello","component":"x","g":{"a":1,"request_id":"r-7"}}`,
		"auto": `"level":"WARN","msg":"hello","component":"x","g":{"a":1,"request_id":"r-7"}}`,
	} {
		var out bytes.Buffer
		logger := NewLogger(&out, slog.LevelWarn, format).With("component", "x").WithGroup("g")
		logger.InfoContext(ctx, "too little")
		logger.WarnContext(ctx, "hello", "a", 1)
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "too little") {
			t.Errorf("%s: %s lacks %s", format, out.String(), want)
		}
	}
}

func TestLoggerOutsideARequest(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	NewLogger(file, slog.LevelInfo, "auto").InfoContext(t.Context(), "hello")
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatalf("a file is no terminal and gets JSON, not %s", text)
	}
	if _, there := record["request_id"]; there || RequestID(t.Context()) != "" {
		t.Errorf("a request id out of nothing: %s", text)
	}
}

func TestMarkdown(t *testing.T) {
	r := NewRegistry(Build{Version: "v1"})
	if err := r.Register(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "likewise_b_total", Help: `Says "b|c".`}, []string{"x", "y"})); err != nil {
		t.Fatal(err)
	}
	r.MustRegister(
		prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "likewise_d_seconds", Help: "D."}, []string{"x"}),
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "likewise_c", Help: "C."}, nil),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "likewise_a", Help: "A."}, func() float64 { return 1 }),
	)
	got, err := r.Markdown()
	if err != nil {
		t.Fatal(err)
	}
	want := `| metric | type | labels | meaning |
|---|---|---|---|
| ` + "`likewise_a`" + ` | gauge | – | A. |
| ` + "`likewise_b_total` | counter | `x`, `y`" + ` | Says "b\|c". |
| ` + "`likewise_build_info` | gauge | `go`, `revision`, `version`" + ` | Always 1; the labels say which build is running. |
| ` + "`likewise_c`" + ` | gauge | – | C. |
| ` + "`likewise_d_seconds` | histogram | `x`" + ` | D. |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := r.Register(prometheus.NewCounter(prometheus.CounterOpts{Name: "likewise_a", Help: "A."})); err == nil {
		t.Error("two metrics of one name are accepted")
	}
}

// silent describes a metric and never has a value.
type silent struct{ prometheus.Collector }

func (silent) Collect(chan<- prometheus.Metric) {}

func TestMarkdownNeedsTheType(t *testing.T) {
	r := NewRegistry(Build{})
	r.MustRegister(silent{prometheus.NewCounter(prometheus.CounterOpts{Name: "likewise_silent_total", Help: "S."})})
	if _, err := r.Markdown(); err == nil || !strings.Contains(err.Error(), "likewise_silent_total") {
		t.Errorf("err = %v", err)
	}
}

func TestContainerMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, tt := range []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"nothing", fstest.MapFS{}, 0},
		{"v2, no limit", fstest.MapFS{"proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/memory.max": file("max\n")}, 0},
		{"v2, in a container", fstest.MapFS{"proc/self/cgroup": file("0::/../x\n"), "sys/fs/cgroup/memory.max": file("1000\n")}, 1000},
		{"v2, the parent is smaller", fstest.MapFS{
			"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("3000\n"), "sys/fs/cgroup/a/memory.max": file("2000\n"),
		}, 2000},
		{"v1", fstest.MapFS{
			"proc/self/cgroup": file("3:cpu,cpuacct:/x\n4:memory:/docker/1\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("4000\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("1\n"),
		}, 4000},
		{"v1, no limit", fstest.MapFS{"proc/self/cgroup": file("4:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 0},
		{"garbage", fstest.MapFS{"proc/self/cgroup": file("x\n0::/\n"), "sys/fs/cgroup/memory.max": file("-5\n")}, 0},
	} {
		got, ok := containerMemory(tt.root)
		if ok != (tt.want != 0) || ok && got != tt.want {
			t.Errorf("%s: %d, %v; want %d", tt.name, got, ok, tt.want)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	container := fstest.MapFS{
		"proc/self/cgroup":         {Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max": {Data: []byte("1000000000\n")},
	}
	inStore := func(n int64) int64 {
		if storeOffHeap {
			return n
		}
		return 0
	}
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, tt := range []struct {
		name   string
		set    int64
		memory Memory
		root   fstest.MapFS
		want   int64
	}{
		{"nothing known", math.MaxInt64, Memory{Store: 5}, fstest.MapFS{}, math.MaxInt64},
		{"container", math.MaxInt64, Memory{Store: 1 << 20}, container, 900_000_000 - inStore(1<<20)},
		{"store larger than the container", math.MaxInt64, Memory{Store: 1 << 40}, container, max(250_000_000, 900_000_000-inStore(1<<40))},
		{"configured", math.MaxInt64, Memory{Configured: 5e8}, container, 5e8},
		{"GOMEMLIMIT", 7e8, Memory{Configured: 5e8}, container, 7e8},
	} {
		debug.SetMemoryLimit(tt.set)
		var out bytes.Buffer
		tt.memory.apply(tt.root, NewLogger(&out, slog.LevelInfo, "text"))
		if got := debug.SetMemoryLimit(-1); got != tt.want {
			t.Errorf("%s: limit %d, want %d", tt.name, got, tt.want)
		}
		if (out.Len() == 0) != (tt.want == math.MaxInt64) {
			t.Errorf("%s: logged %q", tt.name, out.String())
		}
	}
}

func TestTracerExports(t *testing.T) {
	paths := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("PUT /v1/{id}")) && bytes.Contains(body, []byte("likewise")) {
			paths <- r.URL.Path
		}
	}))
	defer collector.Close()

	tracer, err := NewTracer(t.Context(), collector.URL, Build{Version: "v1"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/{id}", func(http.ResponseWriter, *http.Request) {})
	tracer.Wrap(mux).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", "/v1/7", nil))
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case path := <-paths:
		if path != "/v1/traces" {
			t.Errorf("exported to %s", path)
		}
	default:
		t.Error("no span of the request was exported")
	}
}

func TestNoTracer(t *testing.T) {
	tracer, err := NewTracer(t.Context(), "", Build{}, nil)
	if err != nil || tracer != nil {
		t.Fatalf("tracer = %v, err = %v", tracer, err)
	}
	h := http.NewServeMux()
	if tracer.Wrap(h) != http.Handler(h) {
		t.Error("a handler is wrapped although traces are off")
	}
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := NewTracer(t.Context(), "http://[broken", Build{}, nil); err == nil {
		t.Error("a malformed endpoint is accepted")
	}
}

func TestBuild(t *testing.T) {
	if b := ReadBuild("v9"); b.Version != "v9" || !strings.HasPrefix(b.Go, "go") {
		t.Errorf("build = %+v", b)
	}
}

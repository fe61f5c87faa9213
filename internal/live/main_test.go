package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is the totals of a ledger: what a test sets is committed, and comes
// through the feed unless the test keeps it back.
type source struct {
	broadcast ledger.Broadcast

	mu     sync.Mutex
	totals map[like.Item]like.Total
	silent bool
	fail   error
	broken context.CancelCauseFunc // ends the feed that is open
	reads  [][]like.Item
	gate   chan struct{} // when set, an answer waits for a token after it was read
}

func newSource() *source { return &source{totals: map[like.Item]like.Total{}} }

// set commits a count, as the next version of an item.
func (s *source) set(id string, count int64) like.Total {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := like.Total{Item: post(id), Count: count, Version: s.totals[post(id)].Version + 1}
	s.totals[t.Item] = t
	if !s.silent {
		s.broadcast.Publish([]like.Total{t})
	}
	return t
}

func (s *source) with(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
}

// interrupt ends the feed that is open.
func (s *source) interrupt(cause error) { s.with(func() { s.broken(cause) }) }

// count is what the ledger says.
func (s *source) count(id string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals[post(id)].Count
}

func (s *source) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	s.mu.Lock()
	s.reads = append(s.reads, slices.Clone(items))
	totals, err, gate := make([]like.Total, len(items)), s.fail, s.gate
	for i, item := range items {
		totals[i] = s.totals[item]
		totals[i].Item = item
	}
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return totals, err
}

func (s *source) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	ctx, cancel := context.WithCancelCause(ctx)
	s.with(func() { s.broken = cancel })
	return s.broadcast.Feed(ctx)
}

func post(id string) like.Item { return like.Item{Collection: "posts", ID: id} }

func posts(ids ...string) (items []like.Item) {
	for _, id := range ids {
		items = append(items, post(id))
	}
	return items
}

// testConfig is for tests on real sockets: quick, and without bounds that a test
// does not ask for.
func testConfig() Config {
	cfg := DefaultConfig()
	cfg.Interval = 10 * time.Millisecond
	cfg.MaxPerAddress, cfg.MaxPerUser = 0, 0
	cfg.LoadTimeout = 10 * time.Second
	return cfg
}

// startHub runs a hub until the test ends, or stop is called.
func startHub(t testing.TB, cfg Config, s *source) (h *Hub, stop func()) {
	t.Helper()
	h, err := New(cfg, s, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	return h, run(t, h, s, nil)
}

func run(t testing.TB, h *Hub, s ledger.Feeder, want error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx, s) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, want) {
			t.Errorf("Run = %v, want %v", err, want)
		}
	})
	t.Cleanup(stop)
	return stop
}

// page is what a page in a browser makes of a stream: it takes the newest version
// of each item, and remembers the id for the next connection.
type page struct {
	counts map[string]uint64 // by id
	total  map[string]int64
	lastID string
	retry  time.Duration

	events, beats int
	faults        []string

	line  []byte
	id    string
	data  string
	event string
	some  bool // the block has a field
}

func newPage() *page { return &page{counts: map[string]uint64{}, total: map[string]int64{}} }

// Write takes any part of a stream.
func (p *page) Write(b []byte) (int, error) {
	for _, c := range b {
		if c != '\n' {
			p.line = append(p.line, c)
			continue
		}
		p.take(string(p.line))
		p.line = p.line[:0]
	}
	return len(b), nil
}

// cut forgets what was not dispatched, as a browser does when a stream breaks.
func (p *page) cut() { p.line, p.id, p.data, p.event, p.some = p.line[:0], "", "", "", false }

func (p *page) take(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch {
	case line == "":
		p.dispatch()
	case name == "":
		p.beats++
	case name == "retry":
		ms, err := strconv.Atoi(value)
		if err != nil || ms < 1 {
			p.fault("retry %q", value)
		}
		p.retry = time.Duration(ms) * time.Millisecond
	case name == "id":
		p.id, p.some = value, true
	case name == "event":
		p.event, p.some = value, true
	case name == "data":
		p.data, p.some = p.data+value, true
	default:
		p.fault("field %q", line)
	}
}

func (p *page) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

func (p *page) dispatch() {
	defer p.cut()
	if !p.some {
		return
	}
	if p.event != "counts" || p.id == "" {
		p.fault("event %q with id %q", p.event, p.id)
	}
	p.events++
	p.lastID = p.id
	p.message([]byte(p.data))
}

// message takes the JSON of an event or of a WebSocket message.
func (p *page) message(text []byte) {
	var m struct {
		Type   string
		Counts []struct {
			Collection, ID, Display string
			Count                   int64
			Version                 uint64 `json:",string"`
		}
	}
	if err := json.Unmarshal(text, &m); err != nil || len(m.Counts) == 0 {
		p.fault("data %q: %v", text, err)
	}
	for _, c := range m.Counts {
		if c.Version < p.counts[c.ID] {
			p.fault("item %s went from version %d back to %d", c.ID, p.counts[c.ID], c.Version)
		}
		if c.Display != like.Display(c.Count) {
			p.fault("%d is shown as %q", c.Count, c.Display)
		}
		p.counts[c.ID], p.total[c.ID] = c.Version, c.Count
	}
}

// mustShow fails the test unless the page shows exactly these counts, and had no
// reason to complain on the way.
func (p *page) mustShow(t testing.TB, want map[string]int64) {
	t.Helper()
	if !maps.Equal(p.total, want) || len(p.faults) > 0 {
		t.Fatalf("page shows %v, want %v; faults %q", p.total, want, p.faults)
	}
}

// viewer is a stream with a goroutine, on an outlet in memory. It is for synctest
// bubbles, where nothing runs while a test looks at it.
type viewer struct {
	*page
	got    bytes.Buffer
	block  chan struct{} // when not nil, send waits for it or its deadline
	err    error         // of the handler, once ended
	ended  chan struct{}
	cancel context.CancelFunc
}

// looked orders what a test has looked at before what a stream writes later; time
// alone does not, for the race detector.
var looked sync.RWMutex

func order() {
	looked.Lock()
	defer looked.Unlock()
}

func (v *viewer) send(b []byte, deadline time.Time) error {
	if v.block != nil {
		t := time.NewTimer(time.Until(deadline))
		defer t.Stop()
		select {
		case <-v.block:
		case <-t.C:
			return os.ErrDeadlineExceeded
		}
	}
	looked.RLock()
	defer looked.RUnlock()
	v.got.Write(b)
	_, err := v.page.Write(b)
	return err
}

// watch opens a stream for what page knows already.
func watch(t *testing.T, h *Hub, who Viewer, p *page, ids ...string) *viewer {
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if p.lastID != "" {
		r.Header.Set("Last-Event-ID", p.lastID)
	}
	v := &viewer{page: p, ended: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(v.ended)
		v.err = h.streamPlain(r, who, posts(ids...), func() (outlet, error) { return v, nil })
	}()
	return v
}

func (v *viewer) leave() {
	v.cancel()
	<-v.ended
	v.cut()
}

// eventually waits for a condition that real sockets bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.NewTimer(time.Minute)
	defer tick.Stop()
	defer late.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// open counts the streams of a hub.
func (h *Hub) open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

// readHead reads the head of an answer from a raw connection.
func readHead(t testing.TB, r *bufio.Reader) *http.Response {
	t.Helper()
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

var _ io.Writer = (*page)(nil)

func containsItem(stream, id string) bool { return strings.Contains(stream, `"id":"`+id+`"`) }

// value reads a counter or a gauge.
func value(m prometheus.Metric) float64 {
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		panic(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"likewise/internal/auth"
	"likewise/internal/console"
	"likewise/internal/counts"
	"likewise/internal/hot"
	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/internal/limit"
	"likewise/internal/live"
	"likewise/internal/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lag is the delay between acknowledgement and total in the second mode.
const lag = time.Second

// service is both APIs over one memory ledger. Every request made through it, and
// every answer, is checked against the documents.
type service struct {
	*testing.T
	public, admin http.Handler
	ledger        *memory.Ledger
	faults        *faults
	registry      *prometheus.Registry
	log           *logged
}

// options change a service before it is built.
type options struct {
	cfg  Config
	deps Deps
	lag  time.Duration
}

// inBothModes runs a test against a ledger whose totals move with the
// acknowledgement and against one whose totals lag, in virtual time.
func inBothModes(t *testing.T, test func(s *service), change ...func(*options)) {
	t.Helper()
	for name, lag := range map[string]time.Duration{"instant": 0, "lagging": lag} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(newService(t, append(change, func(o *options) { o.lag = lag })...))
			})
		})
	}
}

// once runs a test in virtual time where lag makes no difference.
func once(t *testing.T, test func(s *service), change ...func(*options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newService(t, change...)) })
}

func newService(t *testing.T, change ...func(*options)) *service {
	t.Helper()
	cursors, err := like.NewCursors([]byte("a cursor key of thirty-two bytes"))
	if err != nil {
		t.Fatal(err)
	}
	s := &service{T: t, faults: &faults{}, registry: prometheus.NewRegistry(), log: &logged{}}
	o := options{cfg: DefaultConfig(), deps: Deps{
		Auth: fakeAuth{}, Cursors: cursors, Registerer: s.registry,
		Log: slog.New(slog.NewTextHandler(s.log, nil)),
	}}
	for _, f := range change {
		f(&o)
	}
	s.ledger = memory.New(memory.Config{Lag: o.lag, Seed: 1})
	s.faults.Ledger = s.ledger
	o.deps.Ledger = s.faults
	o.deps.Counts = counts.New(s.faults, nil, counts.DefaultConfig(), nil)
	if o.deps.Live, err = live.New(live.DefaultConfig(), s.faults, o.deps.Log, nil); err != nil {
		t.Fatal(err)
	}
	if s.public, err = New(o.cfg, o.deps); err != nil {
		t.Fatal(err)
	}
	keeper := reconcile.New(s.faults, reconcile.DefaultConfig(), s.registry, o.deps.Log)
	s.admin, err = NewAdmin(AdminDeps{
		Ledger: s.faults, Keeper: keeper, Console: console.New(console.Deps{Ledger: s.faults, Metrics: s.registry, Hot: hot.New(o.deps.Log), Audits: keeper}),
		Auth: fakeAuth{}, Log: o.deps.Log, Registerer: s.registry,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			_, _ = io.WriteString(w, "up 1\n")
		}),
		Checks: map[string]func(context.Context) error{"ledger": s.faults.Ready},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = o.deps.Counts.Run(ctx, s.ledger) })
	wg.Go(func() { _ = o.deps.Live.Run(ctx, s.ledger) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		s.ledger.Close()
	})
	return s
}

// settle waits until totals have caught up and every view of them has.
func (s *service) settle() {
	time.Sleep(2 * lag)
	synctest.Wait()
}

// faults is the ledger with failures that a test switches on.
type faults struct {
	*memory.Ledger
	mu   sync.Mutex
	fail error                 // what every call fails with
	boom any                   // what Apply panics with
	slow func(context.Context) // runs before ApplyMany
}

func (f *faults) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

func (f *faults) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fail
}

func (f *faults) Ready(ctx context.Context) error { return errors.Join(f.failure()) }

func (f *faults) Apply(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
	if f.boom != nil {
		panic(f.boom)
	}
	if err := f.failure(); err != nil {
		return ledger.Ack{}, err
	}
	return f.Ledger.Apply(ctx, cmd)
}

func (f *faults) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	if f.slow != nil {
		f.slow(ctx)
	}
	if err := f.failure(); err != nil {
		return nil, err
	}
	return f.Ledger.ApplyMany(ctx, cmds)
}

func (f *faults) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	if err := f.failure(); err != nil {
		return nil, err
	}
	return f.Ledger.Totals(ctx, items)
}

func (f *faults) Likers(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
	if err := f.failure(); err != nil {
		return ledger.Page{}, err
	}
	return f.Ledger.Likers(ctx, item, after, n)
}

func (f *faults) EraseUser(ctx context.Context, user like.User) (int64, error) {
	if err := f.failure(); err != nil {
		return 0, err
	}
	return f.Ledger.EraseUser(ctx, user)
}

// fakeAuth accepts tokens made by tokenOf, and remembers them all.
type fakeAuth struct{}

func (a fakeAuth) Known(token string) (auth.Identity, bool) {
	identity, err := a.Verify(context.Background(), token)
	return identity, err == nil
}

func tokenOf(user string, scopes ...string) string {
	return "ok." + url.QueryEscape(user) + "." + strings.Join(scopes, ".")
}

func (fakeAuth) Verify(_ context.Context, token string) (auth.Identity, error) {
	parts := strings.Split(token, ".")
	if token == "down" {
		return auth.Identity{}, like.ErrUnavailable
	}
	if len(parts) < 3 || parts[0] != "ok" {
		return auth.Identity{}, auth.ErrUnauthenticated
	}
	user, err := url.QueryUnescape(parts[1])
	if err != nil {
		return auth.Identity{}, auth.ErrUnauthenticated
	}
	return auth.Identity{User: like.User(user), Scopes: parts[2:]}, nil
}

// fakeLimit answers as it is told.
type fakeLimit struct {
	mu   sync.Mutex
	keys []string
	d    limit.Decision
	err  error
}

func (l *fakeLimit) Allow(_ context.Context, key string) (limit.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = append(l.keys, key)
	return l.d, l.err
}

func (l *fakeLimit) Peek(context.Context, string) (limit.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.d, l.err
}

// logged keeps what was logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// call is one request.
type call struct {
	method, target string
	token          string // "" = none
	body           string
	header         http.Header
	admin          bool
}

// answer is what came back.
type answer struct {
	*httptest.ResponseRecorder
	t *testing.T
}

// do sends a request and checks it and its answer against the document.
func (s *service) do(c call) answer {
	s.Helper()
	r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
	if c.body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	maps.Copy(r.Header, c.header)
	handler, doc := s.public, documents().public
	if c.admin {
		handler, doc = s.admin, documents().admin
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	doc.check(s.T, r, c.body, w)
	return answer{w, s.T}
}

// want checks the status and, where it is not empty, the exact body.
func (a answer) want(status int, body string) answer {
	a.t.Helper()
	if a.Code != status || body != "" && a.Body.String() != body {
		a.t.Errorf("got %d %s\nwant %d %s", a.Code, a.Body, status, body)
	}
	return a
}

// problem checks that the answer is one and returns it.
func (a answer) problem(status int, code string) problemBody {
	a.t.Helper()
	var p problemBody
	if err := json.Unmarshal(a.Body.Bytes(), &p); err != nil {
		a.t.Fatalf("got %d %s: %v", a.Code, a.Body, err)
	}
	if a.Code != status || p.Status != status || p.Code != code || p.Type != "urn:likewise:problem:"+code {
		a.t.Errorf("got %d %+v, want %d %s", a.Code, p, status, code)
	}
	if id := a.Header().Get("X-Request-Id"); id == "" || p.RequestID != id {
		a.t.Errorf("request id %q in the body, %q in the header", p.RequestID, id)
	}
	return p
}

// decodeInto reads the body of a 200.
func (a answer) decodeInto(v any) {
	a.t.Helper()
	if a.Code != http.StatusOK {
		a.t.Fatalf("got %d %s", a.Code, a.Body)
	}
	if err := json.Unmarshal(a.Body.Bytes(), v); err != nil {
		a.t.Fatal(err)
	}
}

// countsAnswer is the answer of a counts request as a struct.
type countsAnswer struct {
	Counts []countEntry `json:"counts"`
}

type countEntry struct {
	Collection string   `json:"collection"`
	ID         string   `json:"id"`
	Count      int64    `json:"count"`
	Display    string   `json:"display"`
	LikedByMe  *bool    `json:"liked_by_me,omitempty"`
	AgeMS      int64    `json:"age_ms,omitempty"`
	Friends    *friends `json:"friends,omitempty"`
}

func (s *service) put(user, path string) answer {
	s.Helper()
	return s.do(call{method: http.MethodPut, target: "/v1/" + path + "/like", token: tokenOf(user)})
}

func (s *service) delete(user, path string) answer {
	s.Helper()
	return s.do(call{method: http.MethodDelete, target: "/v1/" + path + "/like", token: tokenOf(user)})
}

func (s *service) get(token, target string) answer {
	s.Helper()
	return s.do(call{method: http.MethodGet, target: target, token: token})
}

func (s *service) post(token, target, body string) answer {
	s.Helper()
	return s.do(call{method: http.MethodPost, target: target, token: token, body: body})
}

func (a answer) tryJSON(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body.Bytes(), v); err != nil {
		t.Errorf("answer %d is not JSON: %v", a.Code, err)
	}
}

// raw sends a request past the check against the document.
func (s *service) raw(c call) *httptest.ResponseRecorder {
	s.Helper()
	r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	maps.Copy(r.Header, c.header)
	w := httptest.NewRecorder()
	s.public.ServeHTTP(w, r)
	return w
}

// metric returns the sum of a metric over its labels.
func (s *service) metric(name string) (sum float64) {
	s.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func (s *service) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s.log, nil)) }

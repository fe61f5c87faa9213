package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/auth"
	"likewise/internal/config"
	"likewise/internal/like"
	"likewise/internal/observe"
	"likewise/test/harness"
)

func TestMain(m *testing.M) { harness.MainWithoutLeaks(m) }

// testConfig is a server on free ports, without limits for one user.
func testConfig(t testing.TB) config.Config {
	t.Helper()
	cfg := config.DefaultConfig()
	cfg.Listen, cfg.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.DataDir = filepath.Join(t.TempDir(), "data")
	cfg.Limits.UserRate, cfg.Limits.UserBurst = 1e6, 1e6
	cfg.Limits.UserReadRate, cfg.Limits.UserReadBurst = 1e6, 1e6
	cfg.Limits.AddressRate, cfg.Limits.AddressBurst = 1e6, 1e6
	cfg.Limits.ShutdownTimeout = time.Minute
	return cfg
}

func testOptions() Options {
	return Options{Log: slog.New(slog.DiscardHandler), Build: observe.Build{Version: "test"}}
}

// running is a server with a client of its own.
type running struct {
	*testing.T
	*Server
	cfg        config.Config
	api, admin string
	client     *http.Client
	stop       func() error // asks it to stop and returns what Run returned
}

func start(t *testing.T, cfg config.Config, o Options) *running {
	t.Helper()
	s, err := New(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	public, admin := s.Addresses()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { done <- s.Run(ctx) })
	r := &running{
		T: t, Server: s, cfg: cfg, api: "http://" + public, admin: "http://" + admin,
		client: &http.Client{Transport: transport, Timeout: time.Minute},
		stop: sync.OnceValue(func() error {
			cancel()
			defer wg.Wait()
			return <-done
		}),
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := r.stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return r
}

// token returns a token of the data directory's key.
func (r *running) token(user like.User, scopes ...string) string {
	r.Helper()
	token, err := Token(r.cfg, user, scopes, time.Hour)
	if err != nil {
		r.Fatal(err)
	}
	return token
}

// call sends a request and returns status and body.
func (r *running) call(method, url, token, body string) (int, string, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := r.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

func (r *running) want(status int, body, method, url, token, send string) {
	r.Helper()
	got, text, err := r.call(method, url, token, send)
	if err != nil || got != status || !strings.Contains(text, body) {
		r.Errorf("%s %s: %d %s, error %v; want %d with %s", method, url, got, text, err, status, body)
	}
}

func TestServe(t *testing.T) {
	cfg := testConfig(t)
	r := start(t, cfg, testOptions())
	ann, admin := r.token("ann"), r.token("op", auth.ScopeAdmin)
	r.want(200, `{"liked":true,"count":1}`, "PUT", r.api+"/v1/posts/1/like", ann, "")
	r.want(401, `missing_token`, "PUT", r.api+"/v1/posts/1/like", "", "")
	r.want(200, `"liked_by_me":true`, "GET", r.api+"/v1/likes/counts?posts=1", ann, "")
	r.want(200, `"user":"ann"`, "GET", r.api+"/v1/posts/1/likers", "", "")
	r.want(200, `"ledger":"ok"`, "GET", r.admin+"/readyz", "", "")
	r.want(200, `ok`, "GET", r.admin+"/livez", "", "")
	r.want(200, `likewise_changes_total 1`, "GET", r.admin+"/metrics", "", "")
	r.want(200, `"items":1,"drifted":0`, "POST", r.admin+"/admin/v1/reconcile", admin, "")
	r.want(403, `missing_scope`, "POST", r.admin+"/admin/v1/reconcile", ann, "")
	r.want(404, `not_found`, "GET", r.admin+"/debug/pprof/heap", "", "")
	r.want(404, `not_found`, "GET", r.api+"/metrics", "", "")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, cfg, testOptions())
	again.want(200, `"count":1`, "GET", again.api+"/v1/likes/counts?posts=1", ann, "")
}

func TestProfilesWhenAskedFor(t *testing.T) {
	cfg := testConfig(t)
	cfg.Pprof = true
	r := start(t, cfg, testOptions())
	r.want(200, "goroutine", "GET", r.admin+"/debug/pprof/", "", "")
	r.want(200, "goroutine profile", "GET", r.admin+"/debug/pprof/goroutine?debug=1", "", "")
	r.want(200, "ok", "GET", r.admin+"/livez", "", "")
	r.want(404, "not_found", "GET", r.api+"/debug/pprof/heap", "", "")
}

// A clock that steps back between two starts does not reorder likes.
func TestClockThatStepsBack(t *testing.T) {
	cfg := testConfig(t)
	o := testOptions()
	o.Now = func() time.Time { return time.Now().Add(time.Hour) }
	r := start(t, cfg, o)
	r.want(200, `"count":1`, "PUT", r.api+"/v1/posts/1/like", r.token("first"), "")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r = start(t, cfg, testOptions())
	r.want(200, `"count":2`, "PUT", r.api+"/v1/posts/1/like", r.token("second"), "")
	_, text, err := r.call("GET", r.api+"/v1/posts/1/likers", "", "")
	if second, first := strings.Index(text, "second"), strings.Index(text, "first"); err != nil || second < 0 || first < second {
		t.Errorf("likers %s, error %v; want the second first", text, err)
	}
}

// tap is a client that likes one new item after the other until it is refused a
// connection. It counts what was acknowledged and reports everything else.
func (r *running) tap(user like.User, acked *atomic.Int64) error {
	token := r.token(user)
	var reset error
	for n := 0; ; n++ {
		status, text, err := r.call("PUT", fmt.Sprintf("%s/v1/%s/%d/like", r.api, user, n), token, "")
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		// The system does that to what waits to be accepted when a listener closes.
		if reset == nil && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
			reset = err
			continue
		}
		if err != nil || status != http.StatusOK || reset != nil {
			return fmt.Errorf("%d %s, error %v, before it %v", status, text, err, reset)
		}
		acked.Add(1)
	}
}

func TestStopUnderLoad(t *testing.T) {
	cfg := testConfig(t)
	r := start(t, cfg, testOptions())
	var acked atomic.Int64
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			if err := r.tap(like.User(fmt.Sprintf("u%d", i)), &acked); err != nil {
				t.Errorf("client %d: a request failed: %v", i, err)
			}
		})
	}
	for acked.Load() < 200 {
		r.want(200, "ready", "GET", r.admin+"/readyz", "", "")
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	clients.Wait()
	again := start(t, cfg, testOptions())
	again.want(200, fmt.Sprintf(`"items":%d,"drifted":0`, acked.Load()), "POST",
		again.admin+"/admin/v1/reconcile", again.token("op", auth.ScopeAdmin), "")
}

func TestStopDoesNotWaitForever(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.ShutdownTimeout = time.Second
	r := start(t, cfg, testOptions())
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.api, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /v1/likes:batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{", r.token("b", auth.ScopeWriteAny))
	if err != nil {
		t.Fatal(err)
	}
	for open := 0; open == 0; open, _ = r.public.listener.Stats() {
		r.want(200, "ready", "GET", r.admin+"/readyz", "", "")
	}
	if err := r.stop(); err != nil {
		t.Errorf("Run: %v; a request that was cut off is no failure", err)
	}
}

func TestWhileStopping(t *testing.T) {
	r := start(t, testConfig(t), testOptions())
	r.draining.Store(true)
	r.want(503, "the server is stopping", "GET", r.admin+"/readyz", "", "")
	res, err := r.client.Get(r.api + "/v1/likes/counts?posts=1")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if !res.Close || res.StatusCode != 200 {
		t.Errorf("answer %d with close %v; want the last one of its connection", res.StatusCode, res.Close)
	}
}

// TestNoticeBeforeAStop: a load balancer that asks for readiness has time to stop
// sending, and what it still sends is answered. A part that fails cuts that short.
func TestNoticeBeforeAStop(t *testing.T) {
	cfg := testConfig(t)
	cfg.Limits.DrainDelay = time.Hour
	s, err := New(t.Context(), cfg, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	fail := make(chan struct{})
	s.background = append(s.background, part{"gears", func(context.Context) error { <-fail; return like.ErrCorrupt }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	public, admin := s.Addresses()
	r := &running{T: t, Server: s, cfg: cfg, client: &http.Client{Timeout: time.Minute}}
	defer r.client.CloseIdleConnections()
	r.want(200, "ready", "GET", "http://"+admin+"/readyz", "", "")
	cancel()
	for status := 200; status == 200; {
		if status, _, err = r.call("GET", "http://"+admin+"/readyz", "", ""); err != nil {
			t.Fatal(err)
		}
	}
	r.want(200, `"count":1`, "PUT", "http://"+public+"/v1/posts/1/like", r.token("ann"), "")
	close(fail)
	if err := <-done; !errors.Is(err, like.ErrCorrupt) {
		t.Errorf("Run: %v", err)
	}
}

// TestStopEndsTheAuditFirst: the listener is open until the background audit is over.
func TestStopEndsTheAuditFirst(t *testing.T) {
	s, err := New(t.Context(), testConfig(t), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	public, _ := s.Addresses()
	s.audit = func(ctx context.Context) error {
		<-ctx.Done()
		conn, err := net.Dial("tcp", public)
		if err != nil {
			return fmt.Errorf("requests were drained before the audit ended: %w", err)
		}
		return conn.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestOneServerForEachDirectory(t *testing.T) {
	cfg := testConfig(t)
	r := start(t, cfg, testOptions())
	public, admin := r.Addresses()
	for _, tc := range []struct {
		name   string
		change func(*config.Config)
		want   []string
	}{
		{"same directory", func(*config.Config) {}, []string{"in use", "--data-dir"}},
		{"same port", func(c *config.Config) { c.Listen = public }, []string{public, "another server", "--listen"}},
		{"same admin port", func(c *config.Config) { c.AdminListen = admin }, []string{admin, "another server", "--admin-listen"}},
		{"foreign address", func(c *config.Config) { c.Listen = "192.0.2.1:80" }, []string{"192.0.2.1", "--listen"}},
		{"no directory", func(c *config.Config) { c.DataDir = filepath.Join(cfg.DataDir, "token.key", "x") }, []string{"--data-dir"}},
		{"bad key", func(c *config.Config) { c.JWT.SecretFile = filepath.Join(cfg.DataDir, "nothing") }, []string{"nothing"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			other := cfg
			tc.change(&other)
			s, err := New(t.Context(), other, testOptions())
			if err == nil {
				t.Fatal("it started", s.Close())
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestServerThatIsNotRun(t *testing.T) {
	cfg := testConfig(t)
	for range 2 { // the second finds nothing in use
		s, err := New(t.Context(), cfg, testOptions())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFailedPartEndsTheServer(t *testing.T) {
	var log bytes.Buffer
	o := testOptions()
	o.Log = slog.New(slog.NewJSONHandler(&log, nil))
	s, err := New(t.Context(), testConfig(t), o)
	if err != nil {
		t.Fatal(err)
	}
	s.background = append(s.background, part{"gears", func(context.Context) error { return like.ErrCorrupt }})
	if err := s.Run(t.Context()); !errors.Is(err, like.ErrCorrupt) {
		t.Errorf("Run: %v, want the part's error", err)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	var last map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	delete(last, "time")
	want := map[string]any{"level": "ERROR", "msg": "stopped by a failure", "error": "gears: corrupt"}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("last line of the log (-want +got):\n%s", diff)
	}
}

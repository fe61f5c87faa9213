package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "0123456789abcdef0123456789abcdef"

func testConfig(t *testing.T, h http.Handler) config {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := defaultConfig()
	cfg.url, cfg.secretFile, cfg.users, cfg.items = server.URL, file, 10, 10
	cfg.connections, cfg.duration = 4, 200*time.Millisecond
	return cfg
}

// TestReport checks that every answer is counted where it belongs.
func TestReport(t *testing.T) {
	var n, served atomic.Int64
	var mu sync.Mutex
	pairs := map[string]int{}
	cfg := testConfig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims := jwt.MapClaims{}
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if _, err := jwt.ParseWithClaims(token, claims, func(*jwt.Token) (any, error) { return []byte(secret), nil }); err != nil {
			t.Error(err)
		}
		mu.Lock()
		pairs[r.Method+r.URL.Path+claims["sub"].(string)]++
		mu.Unlock()
		served.Add(1)
		switch n.Add(1) % 4 {
		case 0:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			w.Header().Set("Connection", "close")
		}
	}))
	cfg.rate, cfg.duration = 40, 2*time.Second // as many as there are pairs at most, also when the start is slow
	requests, err := newRequests(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := generate(t.Context(), cfg, requests)
	if err != nil {
		t.Fatal(err)
	}
	refused := r.Statuses["503"]
	if got := r.Statuses["200"] + refused + r.NoAnswer; got != served.Load() || refused == 0 {
		t.Errorf("%+v has %d requests, %d served", r, got, served.Load())
	}
	if r.NoHint == 0 || r.NoHint == refused || r.NoAnswer != 0 {
		t.Errorf("%d of %d refusals without a hint, %d without an answer", r.NoHint, refused, r.NoAnswer)
	}
	for pair, times := range pairs {
		if !strings.HasPrefix(pair, "PUT/v1/posts/p") || times > 1 {
			t.Errorf("%s was sent %d times", pair, times)
		}
	}
}

// TestLatencyRunsFromWhenARequestWasDue checks that a stall is charged to the
// requests that waited behind it.
func TestLatencyRunsFromWhenARequestWasDue(t *testing.T) {
	const stall = 150 * time.Millisecond // more than half of the run
	var once sync.Once
	cfg := testConfig(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { <-time.After(stall) })
	}))
	cfg.rate, cfg.connections = 500, 1
	requests, err := newRequests(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := generate(t.Context(), cfg, requests)
	if err != nil {
		t.Fatal(err)
	}
	if r.P50 < 1 || r.Max < float64(stall.Milliseconds()) {
		t.Errorf("p50 %v ms, max %v ms behind a stall of %v", r.P50, r.Max, stall)
	}
}

// TestBatches checks that batches like each pair once, as one backend.
func TestBatches(t *testing.T) {
	cfg := testConfig(t, http.NotFoundHandler())
	cfg.op, cfg.batch, cfg.users, cfg.items = "batch", 7, 5, 7
	requests, err := newRequests(cfg)
	if err != nil {
		t.Fatal(err)
	}
	likes := map[string]bool{}
	for n := range int64(5) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(requests.append(nil, n))))
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Commands []struct{ Op, Collection, ID, User string }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/likes:batch" || len(body.Commands) != 7 {
			t.Errorf("%s %s with %d commands", r.Method, r.URL, len(body.Commands))
		}
		for _, c := range body.Commands {
			if c.Op != "like" || c.Collection != "posts" {
				t.Errorf("command %+v", c)
			}
			likes[c.ID+" "+c.User] = true
		}
	}
	if len(likes) != 35 {
		t.Errorf("%d pairs in 35 commands", len(likes))
	}
}

func TestRefusedFlags(t *testing.T) {
	for name, change := range map[string]func(*config){
		"scheme":  func(c *config) { c.url = "https://127.0.0.1" },
		"op":      func(c *config) { c.op = "delete" },
		"numbers": func(c *config) { c.users = 0 },
		"secret":  func(c *config) { c.secretFile += "x" },
	} {
		cfg := testConfig(t, http.NotFoundHandler())
		change(&cfg)
		if _, err := newRequests(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

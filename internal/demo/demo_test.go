package demo

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/ledger/memory"
	"likewise/internal/like"
	"likewise/internal/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// refusing is a ledger that takes no commands for a while.
type refusing struct {
	*memory.Ledger
	mu    sync.Mutex
	calls int
	fail  error
}

func (r *refusing) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.fail != nil {
		return nil, r.fail
	}
	return r.Ledger.ApplyMany(ctx, cmds)
}

// limits lets n visitors in.
type limits struct{ n int }

func (l *limits) Allow(context.Context, string) (limit.Decision, error) {
	l.n--
	return limit.Decision{OK: l.n >= 0}, nil
}

func newDemo(t *testing.T, cfg Config, visitors int) (*Demo, *refusing) {
	t.Helper()
	l := &refusing{Ledger: memory.New(memory.Config{})}
	d, err := New(cfg, Deps{
		Ledger: l, Limit: &limits{visitors}, Log: slog.New(slog.DiscardHandler),
		Sign: func(user like.User, _ time.Duration) (string, error) { return "token." + string(user), nil },
		Verify: func(_ context.Context, token string) (like.User, error) {
			user, ok := strings.CutPrefix(token, "token.")
			if !ok {
				return "", errors.New("not a token")
			}
			return like.User(user), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return d, l
}

// run keeps a demo going until the test ends.
func run(t *testing.T, d *Demo) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { done <- d.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (m *Demo) ask(method, target, body string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w
}

type crowdAnswer struct {
	Rate  float64 `json:"rate"`
	Max   float64 `json:"max"`
	Likes int64   `json:"likes_total"`
}

func into[T any](t *testing.T, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

// facts counts the likes of a ledger, by item.
func facts(t *testing.T, l ledger.Keeper) (all int64, byItem map[string]int64) {
	t.Helper()
	byItem = map[string]int64{}
	for f, err := range l.Export(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(f.User), "crowd-") {
			t.Errorf("%+v is not of the crowd", f)
		}
		all++
		byItem[f.Item.String()]++
	}
	return all, byItem
}

func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDemo(t, Config{Rate: 100, MaxRate: 1000}, 0)
		run(t, d)
		time.Sleep(100 * time.Second)
		synctest.Wait()
		all, byItem := facts(t, l)
		// A like is taken back now and then, and does nothing the second time.
		if all < 17_500 || all > 20_000 {
			t.Errorf("%d likes after 100 s, want a little less than %d", all, beginning+100*100)
		}
		if first, second := byItem["posts/1"], byItem["posts/2"]; first < all/3 || second > first/2 || len(byItem) < 200 {
			t.Errorf("%d likes for the viral post, %d for the next, %d posts in all", first, second, len(byItem))
		}
		if got := into[crowdAnswer](t, d.ask("GET", "/demo/crowd", "")); got.Likes != all || got.Rate != 100 || got.Max != 1000 {
			t.Errorf("%+v, but %d likes are kept", got, all)
		}

		if got := into[crowdAnswer](t, d.ask("POST", "/demo/crowd", `{"rate":0}`)); got.Rate != 0 {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Minute)
		if again, _ := facts(t, l); again-all > 100 {
			t.Errorf("a crowd that rests gave %d likes", again-all)
		}
	})
}

func TestCrowdIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDemo(t, Config{Rate: 0, MaxRate: 1000}, 0)
		l.fail = like.ErrOverloaded
		run(t, d)
		d.crowd.setRate(1000)
		time.Sleep(10 * time.Second)
		l.mu.Lock()
		if l.calls > 11 {
			t.Errorf("%d batches in 10 s at a ledger that takes none", l.calls)
		}
		l.fail = nil
		l.mu.Unlock()
		time.Sleep(10 * time.Second)
		if all, _ := facts(t, l); all < 8000 || all > 11_000 {
			t.Errorf("%d likes in the 10 s after", all)
		}
	})
}

func TestRates(t *testing.T) {
	d, _ := newDemo(t, Config{Rate: 5, MaxRate: 10}, 0)
	for _, body := range []string{"", "{}", `{"rate":11}`, `{"rate":-1}`, `{"rate":"5"}`, `{"rate":1e999}`, strings.Repeat(" ", 2000) + `{"rate":1}`} {
		if w := d.ask("POST", "/demo/crowd", body); w.Code != http.StatusBadRequest {
			t.Errorf("%.20s: %d", body, w.Code)
		}
	}
	r := httptest.NewRequest("POST", "/demo/crowd", strings.NewReader(`{"rate":1}`))
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	if d.ServeHTTP(w, r); w.Code != http.StatusForbidden {
		t.Errorf("another site's page sets the rate: %d", w.Code)
	}
	if got := into[crowdAnswer](t, d.ask("GET", "/demo/crowd", "")); got.Rate != 5 {
		t.Errorf("%+v", got)
	}
	for _, cfg := range []Config{{}, {Rate: 2, MaxRate: 1}, {Rate: -1, MaxRate: 1}} {
		if err := cfg.Validate(); !errors.Is(err, like.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestVisitors(t *testing.T) {
	type visitor struct{ Token, User string }
	d, _ := newDemo(t, DefaultConfig(), 3)
	page := d.ask("GET", "/", "")
	cookies := page.Result().Cookies()
	if page.Code != http.StatusOK || !strings.Contains(page.Body.String(), "This is a demo.") || len(cookies) != 1 || !cookies[0].HttpOnly {
		t.Fatalf("%d with %v", page.Code, cookies)
	}
	w := d.ask("GET", "/demo/token", "", cookies...)
	first := into[visitor](t, w)
	if !strings.HasPrefix(first.User, "visitor-") || first.Token != "token."+first.User || len(w.Result().Cookies()) != 0 {
		t.Errorf("%+v", first)
	}
	if again := into[visitor](t, d.ask("GET", "/demo/token", "", cookies...)); again != first {
		t.Errorf("%+v became %+v", first, again)
	}
	if len(d.ask("GET", "/", "", cookies...).Result().Cookies()) > 0 {
		t.Error("the page gives a visitor another name")
	}
	// Cookies that are not a visitor's make nobody but a new visitor.
	for _, value := range []string{"nonsense", "token.operator"} {
		other := into[visitor](t, d.ask("GET", "/demo/token", "", &http.Cookie{Name: cookieName, Value: value}))
		if other.User == first.User || !strings.HasPrefix(other.User, "visitor-") {
			t.Errorf("%s is %+v", value, other)
		}
	}
	if w := d.ask("GET", "/demo/token", ""); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("beyond the limit: %d", w.Code)
	}
	if w := d.ask("GET", "/", ""); w.Code != http.StatusOK || len(w.Result().Cookies()) > 0 {
		t.Errorf("the page beyond the limit: %d", w.Code)
	}
}

func TestFeedAndPaths(t *testing.T) {
	d, _ := newDemo(t, DefaultConfig(), 1)
	got := into[struct{ Posts []Post }](t, d.ask("GET", "/demo/feed", ""))
	if len(got.Posts) != 12 || got.Posts[0].ID != "1" || got.Posts[11].ID != "12" || got.Posts[0].Collection != "posts" {
		t.Errorf("%+v", got)
	}
	for _, path := range d.Paths() {
		if w := d.ask("GET", path, ""); w.Code != http.StatusOK && path != "/demo/token" {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := d.ask("GET", "/etc/passwd", ""); w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/internal/limit"
	"likewise/web"
)

const (
	cookieName = "likewise_visitor"
	visitorTTL = 24 * time.Hour
	namePrefix = "visitor-"
)

// Config is the settings of a demo.
type Config struct {
	Rate    float64 // likes a second that the crowd gives at the start
	MaxRate float64 // the most that the page may ask for
}

// DefaultConfig returns a crowd that a laptop does not notice.
func DefaultConfig() Config { return Config{Rate: 200, MaxRate: 5000} }

// Validate reports, as [like.ErrInvalid], which setting cannot work.
func (c Config) Validate() error {
	if !(c.MaxRate > 0) || !(c.Rate >= 0) || c.Rate > c.MaxRate {
		return fmt.Errorf("%w: demo: the rate must be from 0 to %v", like.ErrInvalid, c.MaxRate)
	}
	return nil
}

// Deps are the parts that a demo needs. All of them outlive it.
type Deps struct {
	Ledger interface {
		ledger.Writer
		ledger.Feeder
	}
	// Sign makes a token for a visitor, and Verify says whose token it is.
	Sign   func(user like.User, ttl time.Duration) (string, error)
	Verify func(ctx context.Context, token string) (like.User, error)
	// Limit bounds how many visitors one address may make.
	Limit interface {
		Allow(ctx context.Context, key string) (limit.Decision, error)
	}
	Log *slog.Logger
}

// Demo is the page, the crowd and the visitors. It is an [http.Handler] of its
// paths. New starts nothing.
type Demo struct {
	cfg   Config
	d     Deps
	crowd *crowd
	mux   *http.ServeMux
	likes atomic.Int64 // in the store
}

// New returns a demo over a ledger without any likes.
func New(cfg Config, d Deps) (*Demo, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d.Log = d.Log.With("component", "demo")
	m := &Demo{cfg: cfg, d: d, crowd: newCrowd(d.Ledger, d.Log, cfg.Rate), mux: http.NewServeMux()}
	m.mux.Handle("/", web.Demo())
	m.mux.HandleFunc("GET /{$}", m.page)
	m.mux.HandleFunc("GET /demo/token", m.token)
	m.mux.HandleFunc("GET /demo/feed", m.feed)
	m.mux.HandleFunc("GET /demo/crowd", m.showCrowd)
	m.mux.Handle("POST /demo/crowd", http.NewCrossOriginProtection().Handler(http.HandlerFunc(m.setCrowd)))
	return m, nil
}

// Paths lists the paths that a demo answers.
func (m *Demo) Paths() []string {
	return append(slices.Clone(web.Demo().Paths()), "/demo/token", "/demo/feed", "/demo/crowd")
}

// ServeHTTP implements [http.Handler].
func (m *Demo) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mux.ServeHTTP(w, r) }

// Likes returns how many likes are in the store.
func (m *Demo) Likes() int64 { return m.likes.Load() }

// Run keeps the crowd going until ctx is done, and then returns nil, or
// [like.ErrClosed] when the ledger closed first.
func (m *Demo) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { m.crowd.run(ctx) })
	counts := map[like.Item]like.Total{}
	return ledger.Follow(ctx, m.d.Ledger, ledger.Follower{
		Live:    func() {},
		Changed: func(totals []like.Total) { m.add(counts, totals) },
		Lost:    func(error) {},
	})
}

// add brings the sum of all likes up to date.
func (m *Demo) add(counts map[like.Item]like.Total, totals []like.Total) {
	for _, t := range totals {
		if last := counts[t.Item]; t.Version > last.Version {
			m.likes.Add(t.Count - last.Count)
			counts[t.Item] = t
		}
	}
}

// page is the page itself. It names its visitor, so that what the page asks for at
// once, all of it, comes from one.
func (m *Demo) page(w http.ResponseWriter, r *http.Request) {
	if user, _ := m.visitor(r); user == "" {
		_, _, _ = m.welcome(w, r) // without a name the page still shows
	}
	web.Demo().ServeHTTP(w, r)
}

// token answers with the visitor's token; who has none becomes a visitor.
func (m *Demo) token(w http.ResponseWriter, r *http.Request) {
	user, token := m.visitor(r)
	if user == "" {
		var ok bool
		if user, token, ok = m.welcome(w, r); !ok {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many visitors; try again", http.StatusTooManyRequests)
			return
		}
	}
	answer(w, struct {
		Token string    `json:"token"`
		User  like.User `json:"user"`
	}{token, user})
}

// visitor returns whom the cookie names, or "".
func (m *Demo) visitor(r *http.Request) (like.User, string) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return "", ""
	}
	user, err := m.d.Verify(r.Context(), cookie.Value)
	if err != nil || !strings.HasPrefix(string(user), namePrefix) {
		return "", ""
	}
	return user, cookie.Value
}

// welcome makes a visitor, unless one address makes too many.
func (m *Demo) welcome(w http.ResponseWriter, r *http.Request) (like.User, string, bool) {
	decision, err := m.d.Limit.Allow(r.Context(), limit.Key(limit.ClientAddr(r, nil)))
	if err != nil || !decision.OK {
		return "", "", false
	}
	name := make([]byte, 4)
	_, _ = rand.Read(name) // never fails
	user := like.User(namePrefix + hex.EncodeToString(name))
	token, err := m.d.Sign(user, visitorTTL)
	if err != nil {
		m.d.Log.Error("a visitor got no token", "error", err)
		return "", "", false
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: token, Path: "/", MaxAge: int(visitorTTL.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	return user, token, true
}

func (m *Demo) feed(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string][]Post{"posts": feed})
}

func (m *Demo) showCrowd(w http.ResponseWriter, _ *http.Request) {
	answer(w, struct {
		Rate  float64 `json:"rate"`
		Max   float64 `json:"max"`
		Likes int64   `json:"likes_total"`
	}{m.crowd.perSecond(), m.cfg.MaxRate, m.Likes()})
}

func (m *Demo) setCrowd(w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		Rate *float64 `json:"rate"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&wanted)
	if err != nil || wanted.Rate == nil || *wanted.Rate < 0 || *wanted.Rate > m.cfg.MaxRate {
		http.Error(w, `send {"rate":N} with N from 0 to `+strconv.FormatFloat(m.cfg.MaxRate, 'f', -1, 64), http.StatusBadRequest)
		return
	}
	m.crowd.setRate(*wanted.Rate)
	m.showCrowd(w, r)
}

func answer(w http.ResponseWriter, value any) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(value) // who went away needs no answer
}

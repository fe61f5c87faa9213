package console

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"likewise/internal/hot"
	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/internal/reconcile"
)

// rows is how many rows of a list the page shows.
const rows = 20

// Deps is where the figures come from. All of them outlive the console.
type Deps struct {
	Version string
	Metrics prometheus.Gatherer
	Ledger  ledger.Reader
	// Likes returns how many likes are in the store; nil where nobody knows.
	Likes  func() int64
	Hot    interface{ Top(n int) []hot.Item }
	Audits interface{ Runs() []reconcile.Run }
	// Checks tell, by name, whether the process and what it depends on can serve.
	Checks map[string]func(context.Context) error
}

// Console is the operator's view. It is safe for concurrent use.
type Console struct {
	d                 Deps
	began             time.Time
	requests, commits window
}

// New returns a console and starts nothing.
func New(d Deps) *Console { return &Console{d: d, began: time.Now()} }

// Stats is the figures of this moment. Names end in their unit; "total" is counted
// since the process started.
type Stats struct {
	Time     string  `json:"time"` // RFC 3339
	Version  string  `json:"version"`
	UptimeS  float64 `json:"uptime_s"`
	Likes    int64   `json:"likes_total"` // in the store; -1: not known
	Commands float64 `json:"commands_total"`
	Refused  float64 `json:"refused_total"`
	Commits  float64 `json:"commits_total"`
	// Estimates from the buckets of a histogram, over the last ten seconds.
	WriteP50MS float64 `json:"write_p50_ms"`
	WriteP99MS float64 `json:"write_p99_ms"`
	Queue      float64 `json:"queue_length"`
	QueueAgeMS float64 `json:"queue_age_ms"`
	// LagMS is 0: no ledger here has totals that lag.
	LagMS      float64     `json:"lag_ms"`
	FromL1     float64     `json:"l1_hits_total"`
	FromLedger float64     `json:"ledger_hits_total"`
	Stale      float64     `json:"stale_total"`
	Live       LiveClients `json:"live_clients"`
	Frames     float64     `json:"live_frames_total"`
	Dropped    float64     `json:"live_dropped_total"`
	Drift      float64     `json:"drift_found_total"`
	Corrected  float64     `json:"drift_corrected_total"`
	Hot        []HotItem   `json:"hot"`    // the hottest first
	Audits     []Audit     `json:"audits"` // the newest first
	Ready      []Check     `json:"ready"`  // by name
	DiskFree   float64     `json:"disk_free_bytes"`
}

// LiveClients is the open streams, by transport.
type LiveClients struct {
	SSE float64 `json:"sse"`
	WS  float64 `json:"ws"`
}

// HotItem is an item that is liked a lot now.
type HotItem struct {
	Collection string  `json:"collection"`
	ID         string  `json:"id"`
	PerSecond  float64 `json:"likes_per_s"`
	Count      int64   `json:"count"`
}

// Audit is one finished audit of everything.
type Audit struct {
	Time       string `json:"time"` // when it ended
	Items      int    `json:"items"`
	Drifted    int    `json:"drifted"`
	Repaired   int    `json:"repaired"`
	DurationMS int64  `json:"duration_ms"`
}

// Check is one part of readiness.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // "ok", or what is wrong
}

// Stats gathers the figures.
func (c *Console) Stats(ctx context.Context) (Stats, error) {
	m, err := gather(c.d.Metrics)
	if err != nil {
		return Stats{}, err
	}
	now := time.Now()
	p50, p99 := c.latency(now, m)
	return Stats{
		Time: stamp(now), Version: c.d.Version, UptimeS: now.Sub(c.began).Seconds(), Likes: c.likes(),
		Commands: m.sum("likewise_commands_total"), Refused: m.sum("likewise_http_requests_total", isRefusal),
		Commits:    m.sum("likewise_commits_total"),
		WriteP50MS: 1000 * p50, WriteP99MS: 1000 * p99,
		Queue: m.sum("likewise_queue_commands"), QueueAgeMS: 1000 * m.sum("likewise_queue_age_seconds"),
		FromL1: m.sum("likewise_counts_reads_total", has("tier", "l1")), FromLedger: m.sum("likewise_counts_reads_total", has("tier", "ledger")),
		Stale: m.sum("likewise_counts_stale_total"),
		Live: LiveClients{
			SSE: m.sum("likewise_live_clients", has("transport", "sse", "sse_plain")), WS: m.sum("likewise_live_clients", has("transport", "websocket")),
		},
		Frames:  m.sum("likewise_live_frames_total"),
		Dropped: m.sum("likewise_live_dropped_clients_total") + m.sum("likewise_live_conflated_total", has("at", "client")),
		Drift:   m.sum("likewise_drift_found_total"), Corrected: m.sum("likewise_drift_corrected_total"),
		Hot: c.hot(), Audits: c.audits(), Ready: c.ready(ctx),
		DiskFree: m.sum("likewise_disk_free_bytes"),
	}, nil
}

// latency estimates how long likes and unlikes take to be answered, or, where none
// came over HTTP lately, the commits that make them durable.
func (c *Console) latency(now time.Time, m figures) (p50, p99 float64) {
	requests := c.requests.recent(now, m.histogram(requestSeconds, isWrite))
	commits := c.commits.recent(now, m.histogram(commitSeconds))
	if observations(requests) == 0 {
		requests = commits
	}
	return quantile(0.5, requests), quantile(0.99, requests)
}

func (c *Console) likes() int64 {
	if c.d.Likes == nil {
		return -1
	}
	return c.d.Likes()
}

func (c *Console) hot() []HotItem {
	items := []HotItem{}
	for _, item := range c.d.Hot.Top(rows) {
		items = append(items, HotItem{item.Collection, item.ID, item.PerSecond, item.Count})
	}
	return items
}

func (c *Console) audits() []Audit {
	audits := []Audit{}
	for _, run := range slices.Backward(c.d.Audits.Runs()) {
		audits = append(audits, Audit{stamp(run.Ended), run.Items, run.Drifted, run.Repaired, run.Took.Milliseconds()})
	}
	return audits[:min(len(audits), rows)]
}

func (c *Console) ready(ctx context.Context) []Check {
	checks := []Check{}
	for name, check := range c.d.Checks {
		result := Check{name, true, "ok"}
		if err := check(ctx); err != nil {
			result.OK, result.Detail = false, err.Error()
		}
		checks = append(checks, result)
	}
	slices.SortFunc(checks, func(a, b Check) int { return strings.Compare(a.Name, b.Name) })
	return checks
}

// ItemFacts is what the ledger knows of an item.
type ItemFacts struct {
	Total   int64   `json:"total"`
	Version string  `json:"version"` // a decimal integer
	Likers  []Liker `json:"likers"`  // the newest
}

// Liker is who likes an item.
type Liker struct {
	User    like.User `json:"user"`
	LikedAt string    `json:"liked_at"`
}

// Item reads an item from the ledger.
func (c *Console) Item(ctx context.Context, item like.Item) (ItemFacts, error) {
	totals, err := c.d.Ledger.Totals(ctx, []like.Item{item})
	if err != nil {
		return ItemFacts{}, err
	}
	page, err := c.d.Ledger.Likers(ctx, item, like.Fact{}, rows)
	if err != nil {
		return ItemFacts{}, err
	}
	found := ItemFacts{totals[0].Count, strconv.FormatUint(totals[0].Version, 10), []Liker{}}
	for _, f := range page.Facts {
		found.Likers = append(found.Likers, Liker{f.User, stamp(f.Since.Time())})
	}
	return found, nil
}

// UserFacts is what the ledger knows of a user.
type UserFacts struct {
	Likes []Liked `json:"likes"` // the newest
}

// Liked is what a user likes.
type Liked struct {
	Collection string `json:"collection"`
	ID         string `json:"id"`
	LikedAt    string `json:"liked_at"`
}

// User reads a user from the ledger.
func (c *Console) User(ctx context.Context, user like.User) (UserFacts, error) {
	page, err := c.d.Ledger.LikedBy(ctx, user, like.Fact{}, rows)
	if err != nil {
		return UserFacts{}, err
	}
	found := UserFacts{[]Liked{}}
	for _, f := range page.Facts {
		found.Likes = append(found.Likes, Liked{f.Item.Collection, f.Item.ID, stamp(f.Since.Time())})
	}
	return found, nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

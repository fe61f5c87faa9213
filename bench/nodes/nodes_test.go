package nodes_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"likewise/test/harness"
	"likewise/test/servers"
)

var roundTime = flag.Duration("nodes.round", time.Second, "time of one round of each form")

const (
	workers = 4   // connections of the bare insert; twice as many clients of the nodes
	batch   = 500 // likes of one transaction or request
)

func TestMain(m *testing.M) { harness.Main(m) }

// service is two nodes and the database below them.
type service struct {
	urls  []string
	token string
	pool  *pgxpool.Pool
	http  *http.Client
	pairs atomic.Int64
}

func start(b *testing.B) *service {
	url, shared, keys := servers.Database(b), servers.Redis(b).URL(), harness.NewKeys(b)
	s := &service{token: keys.Token("backend", harness.ScopeWriteAny)}
	for range 2 {
		node := harness.NewNode(b, harness.NodeConfig{Keys: keys, Flags: []string{
			"--ledger", url, "--redis", shared, "--limits-address-rate", "0", "--limits-user-rate", "0",
		}})
		node.StartReady(b.Context())
		s.urls = append(s.urls, node.URL)
	}
	pool, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	s.pool = pool
	for _, sql := range []string{
		`CREATE TABLE bare (user_id text COLLATE "C" NOT NULL, item text COLLATE "C" NOT NULL, since bigint NOT NULL, PRIMARY KEY (user_id, item))`,
		`CREATE INDEX ON bare (item, since, user_id)`,
		`CREATE INDEX ON bare (user_id, since, item)`,
	} {
		if _, err := pool.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 4 * workers}
	b.Cleanup(transport.CloseIdleConnections)
	s.http = &http.Client{Transport: transport}
	return s
}

// pair returns a user and an item that are new together.
func (s *service) pair(hot bool, zipf *rand.Zipf) (user, id string) {
	user = fmt.Sprintf("u%d", uint64(s.pairs.Add(1))*0x9e3779b97f4a7c15>>20)
	if hot {
		return user, "7"
	}
	return user, fmt.Sprint(zipf.Uint64())
}

// bare inserts the rows of a batch, sorted.
func (s *service) bare(ctx context.Context, hot bool, zipf *rand.Zipf) error {
	type row struct{ user, item string }
	rows := make([]row, batch)
	for k := range rows {
		user, id := s.pair(hot, zipf)
		rows[k] = row{user, "posts/" + id}
	}
	slices.SortFunc(rows, func(a, b row) int { return bytes.Compare([]byte(a.user), []byte(b.user)) })
	users, items, stamps := make([]string, batch), make([]string, batch), make([]int64, batch)
	for k, r := range rows {
		users[k], items[k], stamps[k] = r.user, r.item, time.Now().UnixMicro()
	}
	_, err := s.pool.Exec(ctx, "INSERT INTO bare SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) ON CONFLICT DO NOTHING", users, items, stamps)
	return err
}

// batch sends the commands of a batch to one node.
func (s *service) batch(ctx context.Context, url string, hot bool, zipf *rand.Zipf) error {
	body := []byte(`{"commands":[`)
	for k := range batch {
		if k > 0 {
			body = append(body, ',')
		}
		user, id := s.pair(hot, zipf)
		body = fmt.Appendf(body, `{"op":"like","user":%q,"collection":"posts","id":%q}`, user, id)
	}
	body = append(body, "]}"...)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/likes:batch", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	res, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	return err
}

// round lets n workers send batches for a while, with a pause behind each, and
// returns likes per second.
func (s *service) round(b *testing.B, n int, pause func() time.Duration, send func(worker int, zipf *rand.Zipf) error) float64 {
	var done atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for w := range n {
		wg.Go(func() {
			zipf := rand.NewZipf(rand.New(rand.NewPCG(rand.Uint64(), 1)), 1.01, 1, 1_000_000)
			for time.Since(began) < *roundTime {
				if err := send(w, zipf); err != nil {
					b.Error(err)
					return
				}
				done.Add(batch)
				<-time.After(pause())
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

func noPause() time.Duration { return 0 }

// BenchmarkBatches sends batches through two nodes and inserts the same rows bare, in
// turns, and reports the nodes' rate and its ratio: medians over the rounds.
func BenchmarkBatches(b *testing.B) {
	for _, hot := range []bool{false, true} {
		b.Run(map[bool]string{false: "spread", true: "hot"}[hot], func(b *testing.B) {
			s := start(b)
			var rates, ratios []float64
			for b.Loop() {
				bare := s.round(b, workers, noPause, func(_ int, zipf *rand.Zipf) error { return s.bare(b.Context(), hot, zipf) })
				rate := s.round(b, 2*workers, noPause, func(w int, zipf *rand.Zipf) error {
					return s.batch(b.Context(), s.urls[w%len(s.urls)], hot, zipf)
				})
				rates, ratios = append(rates, rate), append(ratios, rate/bare)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(percentile(rates, 50), "likes/s")
			b.ReportMetric(percentile(ratios, 50), "x-bare")
		})
	}
}

// BenchmarkLag keeps the nodes at half of what they just took, and reports how long
// after its acknowledgement by one node a like is in the total that the other tells.
func BenchmarkLag(b *testing.B) {
	s := start(b)
	send := func(w int, zipf *rand.Zipf) error { return s.batch(b.Context(), s.urls[w%len(s.urls)], false, zipf) }
	full := s.round(b, 2*workers, noPause, send)
	var lags []float64
	for b.Loop() {
		ctx, stop := context.WithCancel(b.Context())
		var probe sync.WaitGroup
		probe.Go(func() {
			for ctx.Err() == nil {
				lags = append(lags, s.lag(b))
			}
		})
		// A worker that sends 500 and should send at rate r pauses for 500/r, less what it took.
		each := time.Duration(float64(batch) * 2 * workers / (full / 2) * float64(time.Second))
		s.round(b, 2*workers, func() time.Duration { return each / 2 }, send)
		stop()
		probe.Wait()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(percentile(lags, 50), "p50-ms")
	b.ReportMetric(percentile(lags, 99), "p99-ms")
	b.ReportMetric(full/2, "likes/s")
}

// lag likes a new item through one node and waits for the other to count it.
func (s *service) lag(b *testing.B) float64 {
	id := fmt.Sprintf("lag-%d", s.pairs.Add(1))
	body := fmt.Sprintf(`{"commands":[{"op":"like","user":"u","collection":"posts","id":%q}]}`, id)
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.urls[0]+"/v1/likes:batch", bytes.NewReader([]byte(body)))
	if err != nil {
		b.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	s.get(b, r)
	began := time.Now()
	for time.Since(began) < 10*time.Second {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.urls[1]+"/v1/likes/counts?posts="+id, nil)
		if err != nil {
			b.Error(err)
			return 0
		}
		if bytes.Contains(s.get(b, r), []byte(`"count":1,`)) {
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	return float64(time.Since(began).Microseconds()) / 1000
}

func (s *service) get(b *testing.B, r *http.Request) []byte {
	res, err := s.http.Do(r)
	if err != nil {
		b.Error(err)
		return nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.Errorf("%s: %s, %v", res.Status, text, err)
	}
	return text
}

func percentile(values []float64, p int) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[min(len(values)*p/100, len(values)-1)]
}

package postgres

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"likewise/internal/like"
	"likewise/test/servers"
)

var roundTime = flag.Duration("postgres.round", time.Second, "time of one round of each form in BenchmarkBesideBareInsert")

// What a program without a ledger would do: the same rows and indexes, nothing else.
const bareTables = `
	CREATE TABLE bare (user_id text COLLATE "C" NOT NULL, item text COLLATE "C" NOT NULL, since bigint NOT NULL, PRIMARY KEY (user_id, item));
	CREATE INDEX ON bare (item, since, user_id);
	CREATE INDEX ON bare (user_id, since, item)`

const bareInsert = `INSERT INTO bare SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) ON CONFLICT DO NOTHING`

// The usual counter: a trigger that moves one row for each like.
const triggerTables = `
	CREATE TABLE counted (user_id text NOT NULL, item text NOT NULL, since bigint NOT NULL, PRIMARY KEY (user_id, item));
	CREATE TABLE counters (item text PRIMARY KEY, count bigint NOT NULL);
	CREATE FUNCTION bump() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO counters VALUES (NEW.item, 1) ON CONFLICT (item) DO UPDATE SET count = counters.count + 1;
		RETURN NEW;
	END $$;
	CREATE TRIGGER bump AFTER INSERT ON counted FOR EACH ROW EXECUTE FUNCTION bump()`

const (
	benchWorkers = 4   // connections of the baselines, and writers of the ledger
	benchBatch   = 500 // likes of one transaction
	benchClients = 64  // of the trigger form, which has one like in a transaction
)

// form is one way to store likes. like is called by several workers.
type form struct {
	name    string
	workers int
	batch   int
	like    func(ctx context.Context, cmds []like.Command) error
	likes   []float64 // per second, of each round
}

// BenchmarkBesideBareInsert runs the ledger, a bare insert of the same rows and a
// trigger counter in turns, each round on new pairs, and reports the ledger's rate and
// its ratio to the others: medians over the rounds (one for each iteration).
func BenchmarkBesideBareInsert(b *testing.B) {
	for _, hot := range []bool{false, true} {
		b.Run(map[bool]string{false: "spread", true: "hot"}[hot], func(b *testing.B) {
			url := servers.Database(b)
			l := openBench(b, url)
			pool := benchPool(b, url)
			forms := []*form{
				{name: "bare", workers: benchWorkers, batch: benchBatch, like: func(ctx context.Context, cmds []like.Command) error {
					return insertBare(ctx, pool, cmds)
				}},
				{name: "ledger", workers: 2 * benchWorkers, batch: benchBatch, like: func(ctx context.Context, cmds []like.Command) error {
					_, err := l.ApplyMany(ctx, cmds)
					return err
				}},
				{name: "trigger", workers: benchClients, batch: 1, like: func(ctx context.Context, cmds []like.Command) error {
					_, err := pool.Exec(ctx, "INSERT INTO counted VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", string(cmds[0].User), itemText(cmds[0].Item), 1)
					return err
				}},
			}
			var pairs atomic.Int64
			var tail time.Duration
			for b.Loop() {
				for _, f := range forms {
					f.likes = append(f.likes, f.round(b, hot, &pairs))
					if f.name == "ledger" {
						tail = max(tail, settleBench(b, l))
					}
				}
			}
			report(b, forms, tail)
			reportBytes(b, pool)
		})
	}
}

func openBench(b *testing.B, url string) *Ledger {
	cfg := DefaultConfig()
	cfg.URLs, cfg.Writers = []string{url}, benchWorkers
	l, err := Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

func benchPool(b *testing.B, url string) *pgxpool.Pool {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	cfg.MaxConns = benchClients
	pool, err := pgxpool.NewWithConfig(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	for _, sql := range []string{bareTables, triggerTables} {
		if _, err := pool.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	return pool
}

func insertBare(ctx context.Context, pool *pgxpool.Pool, cmds []like.Command) error {
	// Sorted as the ledger's, which is the faster form and spares it deadlocks.
	slices.SortFunc(cmds, func(a, b like.Command) int {
		return comparePairs(command{Command: a, key: a.Item.ID}, command{Command: b, key: b.Item.ID})
	})
	users, items, stamps := make([]string, len(cmds)), make([]string, len(cmds)), make([]int64, len(cmds))
	now := time.Now().UnixMicro()
	for k, c := range cmds {
		users[k], items[k], stamps[k] = string(c.User), itemText(c.Item), now+int64(k)
	}
	_, err := pool.Exec(ctx, bareInsert, users, items, stamps)
	return err
}

// round likes new pairs for a while and returns how many per second.
func (f *form) round(b *testing.B, hot bool, pairs *atomic.Int64) float64 {
	var done atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range f.workers {
		wg.Go(func() {
			zipf := rand.NewZipf(rand.New(rand.NewPCG(rand.Uint64(), 1)), 1.01, 1, 1_000_000)
			for time.Since(began) < *roundTime {
				cmds := make([]like.Command, f.batch)
				for k := range cmds {
					item := "7"
					if !hot {
						item = fmt.Sprint(zipf.Uint64())
					}
					// Users come in no order, as they do.
					user := uint64(pairs.Add(1)) * 0x9e3779b97f4a7c15 >> 20
					cmds[k] = like.Command{Item: post(item), User: like.User(fmt.Sprintf("u%d", user)), Op: like.OpLike}
				}
				if err := f.like(b.Context(), cmds); err != nil {
					b.Error(err)
					return
				}
				done.Add(int64(f.batch))
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

// settleBench waits until the outbox is empty and returns how long that took.
func settleBench(b *testing.B, l *Ledger) time.Duration {
	began := time.Now()
	eventually(b, "the outbox is drained", func() bool {
		var rows int
		err := l.shards[0].read.QueryRow(b.Context(), "SELECT count(*) FROM likewise.outbox").Scan(&rows)
		return err == nil && rows == 0
	})
	return time.Since(began)
}

func report(b *testing.B, forms []*form, tail time.Duration) {
	ledgers := forms[1].likes
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ledgers), "likes/s")
	for _, f := range []*form{forms[0], forms[2]} {
		ratios := make([]float64, len(ledgers))
		for k := range ratios {
			ratios[k] = ledgers[k] / f.likes[k]
		}
		b.ReportMetric(median(ratios), "x-"+f.name)
	}
	b.ReportMetric(float64(tail.Milliseconds()), "tail-ms")
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// reportBytes compares what a like takes on disk, indexes and totals included, with
// the bare table, and checks that facts and totals agree.
func reportBytes(b *testing.B, pool *pgxpool.Pool) {
	var facts, total, bare int64
	var stored, plain float64
	err := pool.QueryRow(b.Context(), `SELECT (SELECT count(*) FROM likewise.likes), (SELECT coalesce(sum(count), 0)::bigint FROM likewise.totals),
		(SELECT count(*) FROM bare),
		(pg_total_relation_size('likewise.likes') + pg_total_relation_size('likewise.totals'))::float8, pg_total_relation_size('bare')::float8`).
		Scan(&facts, &total, &bare, &stored, &plain)
	if err != nil {
		b.Fatal(err)
	}
	if facts != total {
		b.Errorf("%d facts, totals of %d", facts, total)
	}
	b.ReportMetric(stored/float64(facts), "B/like")
	b.ReportMetric(plain/float64(bare), "B/bare-like")
}

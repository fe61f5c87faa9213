// Command load is an open-loop load generator for a running likewise server.
//
//	load --url http://127.0.0.1:8080 --jwt-secret-file FILE [--op put|batch|counts]
//	     [--rate N] [--connections N] [--duration 10s] [--users N] [--items N]
//	     [--hot 0.5] [--page 20] [--batch 1000] [--json]
//
// Requests are due at a fixed rate, whatever the server does, and latency runs
// from the moment at which a request was due: a server that stalls is charged
// for every request that had to wait behind the stall, not only for the one that
// it stalled. With --rate 0 the loop is closed: every connection sends its next
// request as soon as the last one is answered, which finds the peak.
//
// put likes pairs of user and item one after the other, each pair once until all
// users times items are used up; the share --hot goes to one item. batch likes the
// same pairs, --batch of them in one request of a trusted backend; its rates count
// requests. counts reads pages of --page items as a user.
//
// The report, as text or as one JSON object on standard output, has the offered
// and the answered rate, answers by status, refusals without Retry-After, and
// quantiles of the latency of 2xx answers. The exit code is 0 when the run took
// place, whatever it showed.
//
// Connections speak HTTP/1.1 by hand, because on a machine that also runs the
// server every cycle of the client is taken from what is measured.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	cfg := defaultConfig()
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.StringVar(&cfg.url, "url", cfg.url, "base URL of the server")
	flags.StringVar(&cfg.secretFile, "jwt-secret-file", "", "file with the HS256 secret of the server")
	flags.StringVar(&cfg.op, "op", cfg.op, "put, batch or counts")
	flags.IntVar(&cfg.rate, "rate", 0, "requests due per second; 0 = as fast as they are answered")
	flags.IntVar(&cfg.connections, "connections", cfg.connections, "connections, and so requests under way at most")
	flags.DurationVar(&cfg.duration, "duration", cfg.duration, "length of the run")
	flags.IntVar(&cfg.users, "users", cfg.users, "users")
	flags.IntVar(&cfg.items, "items", cfg.items, "items")
	flags.Float64Var(&cfg.hot, "hot", 0, "share of likes that go to one item, 0 to 1")
	flags.IntVar(&cfg.page, "page", cfg.page, "items of one counts request")
	flags.IntVar(&cfg.batch, "batch", cfg.batch, "likes of one batch request")
	asJSON := flags.Bool("json", false, "report as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	requests, err := newRequests(cfg)
	if err != nil {
		return err
	}
	report, err := generate(ctx, cfg, requests)
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(os.Stdout).Encode(report)
	}
	report.print()
	return nil
}

// Report is what a run showed. Rates are per second, times in milliseconds.
type Report struct {
	Seconds    float64          `json:"seconds"`
	Offered    float64          `json:"offered"` // sent per second
	Goodput    float64          `json:"goodput"` // answered with 2xx per second
	Statuses   map[string]int64 `json:"statuses"`
	NoAnswer   int64            `json:"no_answer"`
	NoHint     int64            `json:"no_hint"` // 429 and 503 without Retry-After
	P50        float64          `json:"p50_ms"`
	P99        float64          `json:"p99_ms"`
	P999       float64          `json:"p999_ms"`
	Max        float64          `json:"max_ms"`
	RefusedP99 float64          `json:"refused_p99_ms"` // of 429 and 503, from sending
}

func (r Report) print() {
	fmt.Printf("offered %.0f/s, answered with 2xx %.0f/s, for %.1f s\n", r.Offered, r.Goodput, r.Seconds)
	var statuses []string
	for s := range r.Statuses {
		statuses = append(statuses, s)
	}
	slices.Sort(statuses)
	for _, s := range statuses {
		fmt.Printf("  %s: %d\n", s, r.Statuses[s])
	}
	fmt.Printf("  no answer: %d, refused without Retry-After: %d\n", r.NoAnswer, r.NoHint)
	fmt.Printf("latency of 2xx: p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, max %.2f ms\n", r.P50, r.P99, r.P999, r.Max)
}

type config struct {
	url, secretFile, op string
	rate, connections   int
	duration            time.Duration
	users, items        int
	page, batch         int
	hot                 float64
}

func defaultConfig() config {
	return config{
		url: "http://127.0.0.1:8080", op: "put", connections: 64, duration: 10 * time.Second,
		users: 10_000, items: 1_000, page: 20, batch: 1000,
	}
}

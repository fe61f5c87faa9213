package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// tally is what one connection saw. Times are recorded in microseconds.
type tally struct {
	sent, noAnswer, noHint int64
	statuses               map[int]int64
	good, refused          *hdrhistogram.Histogram
}

func newTally() *tally {
	histogram := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, 60_000_000, 2) }
	return &tally{statuses: map[int]int64{}, good: histogram(), refused: histogram()}
}

// generate sends requests for the length of the run and waits for their answers.
func generate(ctx context.Context, cfg config, requests *requests) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.duration)
	defer cancel()
	begin := time.Now()
	var wg sync.WaitGroup
	var next atomic.Int64
	tallies := make([]*tally, cfg.connections)
	for k := range tallies {
		tallies[k] = newTally()
		wg.Go(func() {
			c := connection{requests: requests, tally: tallies[k]}
			defer c.close()
			for ctx.Err() == nil {
				n := next.Add(1) - 1
				due := begin.Add(dueAfter(n, cfg.rate))
				if cfg.rate == 0 {
					due = time.Now()
				} else if !waitUntil(ctx, due) {
					return
				}
				c.do(n, due)
			}
		})
	}
	wg.Wait()
	return sum(tallies, time.Since(begin))
}

// dueAfter returns how long after the start request n is due.
func dueAfter(n int64, rate int) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(n) / float64(rate) * float64(time.Second))
}

// waitUntil reports false when the run ends first.
func waitUntil(ctx context.Context, due time.Time) bool {
	d := time.Until(due)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// connection sends one request at a time and connects again after a failure.
type connection struct {
	requests *requests
	tally    *tally
	conn     net.Conn
	reader   *bufio.Reader
	buf      []byte
}

func (c *connection) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// do sends request n, which was due at a time, and notes the answer.
func (c *connection) do(n int64, due time.Time) {
	c.tally.sent++
	sent := time.Now()
	a, err := c.exchange(n)
	if err != nil {
		c.tally.noAnswer++
		c.close()
		return
	}
	c.tally.statuses[a.status]++
	switch {
	case a.status/100 == 2:
		_ = c.tally.good.RecordValue(time.Since(due).Microseconds()) // out of range only after a minute
	case a.status == 429 || a.status == 503:
		_ = c.tally.refused.RecordValue(time.Since(sent).Microseconds())
		if !a.hint {
			c.tally.noHint++
		}
	}
	if a.closes {
		c.close()
	}
}

const answerWithin = 10 * time.Second

func (c *connection) exchange(n int64) (answer, error) {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.requests.host, answerWithin)
		if err != nil {
			return answer{}, err
		}
		c.conn, c.reader = conn, bufio.NewReaderSize(conn, 16<<10)
	}
	if err := c.conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return answer{}, err
	}
	c.buf = c.requests.append(c.buf[:0], n)
	if _, err := c.conn.Write(c.buf); err != nil {
		return answer{}, err
	}
	a, err := readHead(c.line)
	if err != nil {
		return a, err
	}
	if a.length < 0 {
		return a, fmt.Errorf("answer %d without a length", a.status)
	}
	_, err = c.reader.Discard(a.length)
	return a, err
}

func (c *connection) line() (string, error) {
	b, err := c.reader.ReadSlice('\n')
	return strings.TrimRight(string(b), "\r\n"), err
}

func sum(tallies []*tally, took time.Duration) (Report, error) {
	all := newTally()
	for _, t := range tallies {
		all.sent += t.sent
		all.noAnswer += t.noAnswer
		all.noHint += t.noHint
		for s, n := range t.statuses {
			all.statuses[s] += n
		}
		all.good.Merge(t.good)
		all.refused.Merge(t.refused)
	}
	if all.sent == all.noAnswer {
		return Report{}, fmt.Errorf("no answer to any of %d requests", all.sent)
	}
	ms := func(us int64) float64 { return float64(us) / 1000 }
	r := Report{
		Seconds: took.Seconds(), Offered: float64(all.sent) / took.Seconds(),
		Statuses: map[string]int64{}, NoAnswer: all.noAnswer, NoHint: all.noHint,
		P50: ms(all.good.ValueAtQuantile(50)), P99: ms(all.good.ValueAtQuantile(99)),
		P999: ms(all.good.ValueAtQuantile(99.9)), Max: ms(all.good.Max()),
		RefusedP99: ms(all.refused.ValueAtQuantile(99)),
	}
	var good int64
	for s, n := range all.statuses {
		r.Statuses[strconv.Itoa(s)] = n
		if s/100 == 2 {
			good += n
		}
	}
	r.Goodput = float64(good) / took.Seconds()
	return r, nil
}

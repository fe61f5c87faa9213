package scenarios

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"likewise/test/harness"
)

// quickStream makes what a stream does now and then happen often.
func quickStream(*testing.T) Options {
	return Options{Flags: []string{"--live-interval", "50ms", "--live-heartbeat", "1s"}}
}

// impatient soon cuts off who does not read. The heartbeat stays long, because
// the kernel gives a client up after that long too, and the service shall do it.
func impatient(*testing.T) Options {
	return Options{Flags: []string{"--live-interval", "50ms", "--live-write-timeout", "1s"}}
}

// streaming is pages that follow a stream each in the background.
type streaming struct {
	w     *world
	pages []*harness.Page
	cut   context.CancelFunc
	wg    sync.WaitGroup
	errs  []error // of each page; read after wait
}

// watch opens a stream for each page and waits until all of them show something.
func (w *world) watch(pages ...*harness.Page) *streaming {
	w.Helper()
	ctx, cut := context.WithCancel(w.ctx)
	s := &streaming{w: w, pages: pages, cut: cut, errs: make([]error, len(pages))}
	w.Cleanup(s.wg.Wait) // the context ends before
	for k, p := range pages {
		s.wg.Go(func() { s.errs[k] = p.Follow(ctx) })
	}
	s.within(settle, "showing everything at first", func(p *harness.Page) bool { return len(p.Counts()) > 0 })
	return s
}

// within waits until something holds for every page.
func (s *streaming) within(d time.Duration, what string, holds func(p *harness.Page) bool) {
	s.w.Helper()
	ctx, cancel := context.WithTimeout(s.w.ctx, d)
	defer cancel()
	missing := 0
	err := harness.Poll(ctx, 10*time.Millisecond, func() (bool, error) {
		missing = 0
		for _, p := range s.pages {
			if !holds(p) {
				missing++
			}
		}
		return missing == 0, nil
	})
	if err != nil {
		s.end()
		s.w.Fatalf("%s: not so for %d of %d pages: %v", what, missing, len(s.pages), err)
	}
}

// end drops the streams; wait waits until the server has ended them. Both want
// that nothing else went wrong.
func (s *streaming) end() { s.w.Helper(); s.cut(); s.wait() }

func (s *streaming) wait() {
	s.w.Helper()
	s.wg.Wait()
	s.cut()
	for _, err := range s.errs {
		s.w.must(err)
	}
}

// firstMessage returns what a new stream says first of an item.
func (w *world) firstMessage(item harness.Item) int64 {
	w.Helper()
	p := w.client.NewPage(w.user(0), item)
	w.watch(p).end()
	return p.Counts()[item].Count
}

// spread likes n posts in turn, each time as a new user, at a rate per second
// until more returns false. It returns how long each acknowledged like took, and
// the first failure.
func (w *world) spread(from, rate, posts int, more func(sent int) bool) (took []time.Duration, failed error) {
	jobs := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 32 {
		wg.Go(func() {
			for k := range jobs {
				begin := time.Now()
				err := w.set(w.user(from+k), w.post(k%posts+1), true)
				mu.Lock()
				if err == nil {
					took = append(took, time.Since(begin))
				}
				failed = cmp.Or(failed, err)
				mu.Unlock()
			}
		})
	}
	w.paced(rate, func(k int) bool {
		jobs <- k
		return more(k)
	})
	close(jobs)
	wg.Wait()
	return took, failed
}

// endStreams is B31: open streams, also one that nobody reads, do not keep the
// service from stopping, and what runs is answered.
func endStreams(w *world) {
	w.needNodes()
	const streams, posts = 100, 10
	items := w.posts(posts)
	pages := make([]*harness.Page, streams-1)
	for k := range pages {
		pages[k] = w.client.NewPage(w.user(k+1), items...)
	}
	_, err := w.client.Stall(w.ctx, w.user(streams), items...)
	w.must(err)
	watching := w.watch(pages...)

	stopped := make(chan struct{})
	watching.wg.Go(func() {
		_, _ = w.spread(0, 100, posts, func(int) bool {
			select {
			case <-stopped:
				return false
			default:
				return true
			}
		})
	})
	w.must(harness.Poll(w.ctx, time.Millisecond, func() (bool, error) {
		return w.acks.Acked() >= size[int64](w, 50, 500), nil // in the midst of likes
	}))
	for _, n := range w.target.Nodes {
		n.Signal(syscall.SIGTERM)
	}
	for _, n := range w.target.Nodes {
		n.WaitStopped()
	}
	close(stopped)
	watching.wait()
	for _, p := range pages {
		if p.Farewell() < 0 {
			w.Fatal("a stream ended without saying when to come back")
		}
	}
	w.acks.Died()
	w.start()
	w.settled()
	w.wantAnswered()
}

// wantAnswered wants that no like took effect without an answer. One that came
// too late to be read has none, and does not count.
func (w *world) wantAnswered() {
	w.Helper()
	for _, pair := range w.acks.Pairs() {
		liked, unliked := w.acks.May(pair.User, pair.Item)
		if liked && unliked && w.counts(pair.User, pair.Item)[0].Mine() {
			w.Fatalf("the like of %s on %v took effect and was never answered", pair.User, pair.Item)
		}
	}
}

// trueResumePoint is B32: what comes between two events does not move the point
// from which a page goes on.
func trueResumePoint(w *world) {
	p := w.post(1)
	page := w.client.NewPage(w.user(9), p)
	shows := func(want int64) func(*harness.Page) bool {
		return func(page *harness.Page) bool { return page.Counts()[p].Count == want }
	}
	witness := w.watch(w.client.NewPage(w.user(8), p))
	first := w.watch(page)
	w.like(w.user(1), p)
	first.within(settle, "1 like", shows(1))
	signs := page.Signs()
	first.within(settle, "two signs of life", func(page *harness.Page) bool { return page.Signs() >= signs+2 })
	first.end()
	for u := 2; u <= 4; u++ {
		w.like(w.user(u), p)
	}
	witness.within(settle, "4 likes without a break", shows(4)) // so they are no news any more
	second := w.watch(page)
	second.within(settle, "4 likes", shows(4))
	second.end()
	witness.end()
}

// cutOff is B33: what is told twice counts once.
func cutOff(w *world) {
	p := w.post(1)
	page := w.client.NewPage(w.user(0), p)
	likes := size(w, 100, 1000)
	unlikes := likes * 3 / 10
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var following sync.WaitGroup
	var broken error
	streams := 0
	following.Go(func() {
		for ; ctx.Err() == nil && broken == nil; streams++ {
			once, cut := context.WithTimeout(ctx, time.Duration(50+rand.IntN(451))*time.Millisecond)
			broken = page.Follow(once)
			if broken == nil && once.Err() == nil {
				broken = errors.New("the server ended a stream")
			}
			cut()
		}
	})
	_, err := w.spread(0, 50, 1, func(sent int) bool { return sent < likes })
	w.must(err)
	w.parallel(unlikes, 8, func(k int) error { return w.set(w.user(k), p, false) })
	w.wantCount(p, int64(likes-unlikes))
	settle, stop := context.WithTimeout(w.ctx, w.target.Settle)
	defer stop()
	_ = harness.Poll(settle, 10*time.Millisecond, func() (bool, error) { // judged below
		return page.Counts()[p].Count == int64(likes-unlikes), nil
	})
	cancel()
	following.Wait()
	w.must(broken)
	if got := page.Counts()[p].Count; got != int64(likes-unlikes) || page.Most() > int64(likes) || streams < 4 {
		w.Fatalf("after %d streams the page shows %d and once showed %d, want %d and at most %d",
			streams, got, page.Most(), likes-unlikes, likes)
	}
}

// stalledReader is B34: who does not read holds up nobody.
func stalledReader(w *world) {
	const posts, perStream, rate = 100, 50, 250 // a stream takes half of the posts
	w.name += strings.Repeat("x", 80)           // long names fill buffers soon
	items, likes := w.posts(posts), size(w, 1000, 5000)
	pages := make([]*harness.Page, 50)
	for k := range pages {
		half := items[k%2*perStream:][:perStream]
		pages[k] = w.client.NewPage(w.user(k), half...)
	}
	watching := w.watch(pages...)
	sent := 0
	final := func(p *harness.Page) bool {
		for _, n := range p.Counts() {
			if n.Count != int64(sent/posts) {
				return false
			}
		}
		return len(p.Counts()) == perStream
	}
	round := func() time.Duration {
		took, err := w.spread(sent, rate, posts, func(k int) bool { return k < likes })
		w.must(err)
		sent += likes
		watching.within(settle, "the final counts", final)
		return usualP99(took, rate)
	}
	stalledRound := func() time.Duration {
		stalled, err := w.client.Stall(w.ctx, w.user(-1), items[:perStream]...)
		w.must(err)
		defer stalled.Close()
		took := round()
		for k := 0; k < 5 && !w.dropped(); k++ {
			round() // how much the system buffers is its own affair
		}
		w.wantDropped()
		return took
	}
	rss := w.rss()
	stalledRound()
	if grown := w.rss() - rss; grown >= 50<<20 {
		w.Fatalf("memory grew by %d MiB", grown>>20)
	}
	fresh := w.watch(w.client.NewPage(w.user(-2), items[:perStream]...))
	fresh.within(settle, "the final counts on a new stream", final)
	fresh.end()
	if !w.small {
		w.wantClose("a stalled reader", stalledRound, round, func(with, without time.Duration) bool {
			return with <= max(without*6/5, without+20*time.Millisecond)
		})
	}
	watching.end()
}

// usualP99 returns the median of the p99 of each n, so that a burst of something
// else on the machine does not decide.
func usualP99(took []time.Duration, n int) time.Duration {
	var each []time.Duration
	for part := range slices.Chunk(took, n) {
		each = append(each, p99(part))
	}
	slices.Sort(each)
	return each[len(each)/2]
}

// wantDropped wants that the reader that stalled was in arrears long enough to
// be cut off; otherwise nothing was put to the test.
func (w *world) wantDropped() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, settle)
	defer cancel()
	w.must(harness.Poll(ctx, 20*time.Millisecond, func() (bool, error) { return w.dropped(), nil }))
}

// dropped reports whether a client was cut off, as far as can be seen.
func (w *world) dropped() bool {
	w.Helper()
	if len(w.target.Admin) == 0 {
		return true
	}
	n, err := w.client.Metric(w.ctx, "likewise_live_dropped_clients_total")
	w.must(err)
	return n > 0
}

// rss returns the resident memory of all nodes in bytes, 0 when they are not ours.
func (w *world) rss() (sum int64) {
	for _, n := range w.target.Nodes {
		sum += n.RSS()
	}
	return sum
}

package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
	"likewise/test/servers"
)

// impatient returns settings with which a database that is away is noticed soon.
func impatient(url string) Config {
	cfg := testConfig(url)
	cfg.QueueAge = 500 * time.Millisecond
	cfg.QueueLength = ledger.MaxBatch
	cfg.BatchCommands = 50
	return cfg
}

// likes waits until a like is accepted: half a second may be too short on a busy machine.
func likes(t *testing.T, l *Ledger, item like.Item) {
	t.Helper()
	eventually(t, "likes are accepted", func() bool {
		_, err := l.Apply(t.Context(), like.Command{Item: item, User: "u", Op: like.OpLike})
		return err == nil
	})
}

// flood sends batches at once until done is closed, demands that each ends in time
// with one of the kinds for "later", and returns how often which came.
func flood(t *testing.T, l *Ledger, limit time.Duration, done <-chan struct{}) (overloaded, unavailable int) {
	t.Helper()
	var mu sync.Mutex
	var users sync.WaitGroup
	for u := range 40 {
		users.Go(func() {
			cmds := make([]like.Command, 50)
			for k := range cmds {
				cmds[k] = like.Command{Item: postN(k), User: userN(u), Op: like.OpLike}
			}
			for {
				select {
				case <-done:
					return
				default:
				}
				begin := time.Now()
				_, err := l.ApplyMany(context.WithoutCancel(t.Context()), cmds)
				took := time.Since(begin)
				mu.Lock()
				switch {
				case errors.Is(err, like.ErrOverloaded):
					overloaded++
				case errors.Is(err, like.ErrUnavailable):
					unavailable++
				case err != nil:
					t.Errorf("a batch ended with %v", err)
				}
				mu.Unlock()
				if took > limit {
					t.Errorf("a batch ended after %v with %v", took, err)
				}
				if waiting := l.Stats().QueueLength; waiting > ledger.MaxBatch {
					t.Errorf("%d commands wait", waiting)
				}
				sleep(t.Context(), 10*time.Millisecond)
			}
		})
	}
	users.Wait()
	return overloaded, unavailable
}

// A database that is away, or so slow that it might be, is no reason to wait for long:
// calls are refused, the node says that it is not ready, and goes on by itself.
func TestDatabaseIsAway(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		away, back func(*servers.TCPProxy)
	}{
		{"down", func(p *servers.TCPProxy) { p.Cut() }, func(p *servers.TCPProxy) {
			if err := p.Heal(); err != nil {
				t.Error(err)
			}
		}},
		{"slow", func(p *servers.TCPProxy) { p.Delay(2 * time.Second) }, func(p *servers.TCPProxy) { p.Delay(0) }},
		{"silent", func(p *servers.TCPProxy) { p.Delay(time.Hour) }, func(p *servers.TCPProxy) {
			p.Delay(0)
			p.Cut() // what was sent into the silence is lost
			if err := p.Heal(); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			proxy := servers.Proxy(t, servers.Database(t))
			cfg := impatient(proxy.URL())
			l := openTest(t, cfg)
			likes(t, l, post("before"))
			tt.away(proxy)
			done := make(chan struct{})
			go func() {
				defer close(done)
				eventually(t, "it is not ready", func() bool { return errors.Is(l.Ready(t.Context()), like.ErrUnavailable) })
			}()
			// As long in the queue as there, a look at what became of it, and what a busy
			// machine adds.
			overloaded, unavailable := flood(t, l, 2*cfg.QueueAge+10*time.Second, done)
			if overloaded == 0 || unavailable == 0 {
				t.Errorf("%d calls found the queue full, %d the database away", overloaded, unavailable)
			}
			tt.back(proxy)
			likes(t, l, post("after"))
			eventually(t, "it is ready again", func() bool { return l.Ready(t.Context()) == nil })
			totalIs(t, l, post("after"), 1)
			if drifted := drift(t, l); drifted != nil {
				t.Errorf("drift: %+v", drifted)
			}
		})
	}
}

// A node stops although its database has gone silent, and leaves nothing behind.
func TestCloseWhileTheDatabaseIsSilent(t *testing.T) {
	t.Parallel()
	proxy := servers.Proxy(t, servers.Database(t))
	l := openTest(t, impatient(proxy.URL()))
	likes(t, l, post("1"))
	if _, err := l.Liked(t.Context(), "u", []like.Item{post("1")}); err != nil {
		t.Fatal(err)
	}
	proxy.Delay(time.Hour)
	var calls sync.WaitGroup
	for u := range 8 {
		calls.Go(func() {
			_, err := l.Apply(context.WithoutCancel(t.Context()), like.Command{Item: post("1"), User: userN(u), Op: like.OpLike})
			if err == nil {
				t.Error("a like was acknowledged by nobody")
			}
		})
	}
	calls.Go(func() {
		_, err := l.Liked(context.WithoutCancel(t.Context()), "u", []like.Item{post("1")})
		if err == nil {
			t.Error("a state was read from nobody")
		}
	})
	eventually(t, "calls are under way", func() bool { return l.Stats().BusyConnections >= 2 })
	begin := time.Now()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		l.Close()
	}()
	select {
	case <-closed:
		t.Logf("closed within %v", time.Since(begin).Round(time.Millisecond))
	case <-time.After(30 * time.Second):
		t.Error("Close waits for a silent database")
		proxy.Cut()
		<-closed
	}
	calls.Wait()
}

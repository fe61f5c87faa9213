package nodes

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"likewise/test/harness"
	"likewise/test/servers"
)

// TestDoubleTap sends the same like, and then the same unlike, a thousand times at one
// instant through three nodes: it counts once, also in each of the answers.
func TestDoubleTap(t *testing.T) {
	c := start(t, 3, servers.Database(t), servers.Redis(t).URL())
	const taps = 1000
	for round := range harness.Size(1, 5) {
		user, item := fmt.Sprint("tapper-", round), harness.Post(fmt.Sprint("tapped-", round))
		for _, like := range []bool{true, false, true} {
			want := harness.LikeState{Liked: like}
			if like {
				want.Count = 1
			}
			c.together(taps, func(int) error {
				got, err := c.set(user, item, like)
				if err == nil && got != want {
					err = fmt.Errorf("answered %+v, want %+v", got, want)
				}
				return err
			})
			c.showsSoon(item, want.Count)
		}
		c.together(taps, func(k int) error { return c.toggle(user, item, k%2 == 0) })
	}
	c.check()
	if n := c.client.Answers(5); n > 0 {
		t.Errorf("%d answers of 5xx", n)
	}
}

// toggle likes or unlikes while others do the opposite. The answer may tell of one of
// those already; whatever comes last wins, and all nodes agree about it.
func (c *cluster) toggle(user string, item harness.Item, like bool) error {
	r := harness.Request{Method: http.MethodDelete, Path: item.Path("like"), User: user}
	if like {
		r.Method = http.MethodPut
	}
	done := c.acks.Begin(user, item, like)
	res, err := c.client.Do(c.Context(), r)
	if err == nil && res.Status != http.StatusOK {
		err = harness.ProblemOf(r, res)
	}
	done(err == nil)
	return err
}

// together runs f(0) to f(n-1) at one instant and wants none of them to fail.
func (c *cluster) together(n int, f func(k int) error) {
	c.Helper()
	var wg sync.WaitGroup
	begin, errs := make(chan struct{}), make(chan error, n)
	for k := range n {
		wg.Go(func() {
			<-begin
			errs <- f(k)
		})
	}
	close(begin)
	wg.Wait()
	close(errs)
	failed, first := 0, error(nil)
	for err := range errs {
		if err != nil {
			failed++
			first = err
		}
	}
	if failed > 0 {
		c.Fatalf("%d of %d failed, one of them: %v", failed, n, first)
	}
}

package nodes

import (
	"fmt"
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
		c.together(taps, func(k int) error {
			_, err := c.set(user, item, k%2 == 0)
			return err
		})
	}
	c.check()
	if n := c.client.Answers(5); n > 0 {
		t.Errorf("%d answers of 5xx", n)
	}
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

package crash

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"

	"likewise/test/harness"
)

const (
	users   = 300
	items   = 60 // the first one takes half of the load
	workers = 64
)

// load is many users who like and unlike a hot item and some others.
type load struct {
	harness.Recorder
}

// start runs the workers until stop is called, which waits for them.
func (l *load) start(ctx context.Context, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() {
			choices := rand.New(rand.NewPCG(seed, uint64(k)))
			for ctx.Err() == nil {
				item := 0
				if choices.IntN(2) == 0 {
					item = 1 + choices.IntN(items-1)
				}
				user, like := "u"+strconv.Itoa(choices.IntN(users)), choices.IntN(10) < 6
				// A failure shows in what the checker finds and in the counted answers;
				// without an answer the node is down and there is nothing more to do.
				_, err := l.Set(context.WithoutCancel(ctx), user, harness.Post(strconv.Itoa(item)), like)
				if err != nil && harness.StatusOf(err) == 0 {
					return
				}
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

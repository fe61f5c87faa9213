package servers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"likewise/test/harness"
)

// within is how long a server may take for what a test waits for, on a busy machine.
const within = time.Minute

// givenUp wraps an error after which nothing is worth trying again.
type givenUp struct{ error }

func (e *givenUp) Unwrap() error { return e.error }

// poll calls try until it returns nil or a givenUp, or a minute has passed. It
// returns the last error.
func poll(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last error
	err := harness.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		last = try(once)
		gave, _ := errors.AsType[*givenUp](last)
		if gave != nil {
			return false, gave
		}
		return last == nil, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("not within %v: %w", within, last)
	}
	return err
}

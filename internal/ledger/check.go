package ledger

import (
	"fmt"
	"time"

	"likewise/internal/like"
)

// MaxAhead is how far an imported time may lie in the future: the clock error
// that is forgiven between the machine that recorded a like and this one.
const MaxAhead = time.Minute

// CheckCommands validates the commands of one call for every ledger alike. now
// is the ledger's clock.
func CheckCommands(cmds []like.Command, now like.Stamp) error {
	if len(cmds) > MaxBatch {
		return fmt.Errorf("%w: more than %d commands in one call", like.ErrInvalid, MaxBatch)
	}
	limit := now + like.Stamp(MaxAhead.Microseconds())
	for i, c := range cmds {
		if err := c.Validate(); err != nil {
			return fmt.Errorf("command %d: %w", i, err)
		}
		if c.At > limit {
			return fmt.Errorf("command %d: %w: time is in the future", i, like.ErrInvalid)
		}
	}
	return nil
}

// CheckItems validates the items of one call.
func CheckItems(items []like.Item) error {
	if len(items) > MaxItems {
		return fmt.Errorf("%w: more than %d items in one call", like.ErrInvalid, MaxItems)
	}
	for _, it := range items {
		if err := it.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// CheckUsers validates the users of one call.
func CheckUsers(users []like.User) error {
	if len(users) > MaxItems {
		return fmt.Errorf("%w: more than %d users in one call", like.ErrInvalid, MaxItems)
	}
	for _, u := range users {
		if err := u.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// CheckPage validates a page size.
func CheckPage(n int) error {
	if n < 1 || n > MaxPage {
		return fmt.Errorf("%w: page size must be between 1 and %d", like.ErrInvalid, MaxPage)
	}
	return nil
}

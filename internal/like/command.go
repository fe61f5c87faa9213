package like

import "fmt"

// Op is what a command does. The zero value is not an operation.
type Op uint8

// The two operations.
const (
	OpLike Op = iota + 1
	OpUnlike
)

// String returns "like" or "unlike".
func (o Op) String() string {
	switch o {
	case OpLike:
		return "like"
	case OpUnlike:
		return "unlike"
	default:
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
}

// Command is one user's wish about one item.
type Command struct {
	Item Item
	User User
	Op   Op
	// At is the original time of an imported like. Zero, the normal case, lets
	// the ledger stamp the command when it accepts it.
	At Stamp
}

// Validate reports, as [ErrInvalid], why a command cannot be accepted. Whether At
// lies in the future is for the ledger to judge, which owns the clock.
func (c Command) Validate() error {
	if err := c.Item.Validate(); err != nil {
		return err
	}
	if err := c.User.Validate(); err != nil {
		return err
	}
	if c.Op != OpLike && c.Op != OpUnlike {
		return fmt.Errorf("%w: operation must be like or unlike", ErrInvalid)
	}
	if c.At < 0 {
		return fmt.Errorf("%w: time is before 1970", ErrInvalid)
	}
	if c.At != 0 && c.Op != OpLike {
		return fmt.Errorf("%w: only a like can carry its original time", ErrInvalid)
	}
	return nil
}

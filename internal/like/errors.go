package like

import "errors"

// The kinds of failure. The set is closed: a driver wraps what its vendor
// reports together with one of these, and callers branch on nothing else.
var (
	// ErrInvalid is the caller's mistake. Its text is fit to be shown to the caller.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound says that the thing asked for does not exist.
	ErrNotFound = errors.New("not found")
	// ErrOverloaded says that a bounded queue or rate is used up; retry later.
	ErrOverloaded = errors.New("overloaded")
	// ErrUnavailable says that a store cannot serve now; retry later.
	ErrUnavailable = errors.New("unavailable")
	// ErrClosed says that the part was closed by its owner.
	ErrClosed = errors.New("closed")
	// ErrCorrupt says that stored data contradict themselves; a person must look.
	ErrCorrupt = errors.New("corrupt")
)

// Kinds lists every kind, so that a table over them can be proved total.
func Kinds() []error {
	return []error{ErrInvalid, ErrNotFound, ErrOverloaded, ErrUnavailable, ErrClosed, ErrCorrupt}
}

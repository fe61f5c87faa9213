package like

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Limits of names, in bytes. They bound key sizes in every store, so they are
// fixed by the format and not a setting.
const (
	MaxCollectionBytes = 32
	MaxIDBytes         = 128
	MaxUserBytes       = 128
)

// Item is the thing that is liked: posts/42, games/7. Both parts are opaque and
// compared byte for byte.
type Item struct {
	Collection string
	ID         string
}

// String returns "collection/id" for logs and messages. It is not a key: use the
// two fields where items must not be confused.
func (i Item) String() string { return i.Collection + "/" + i.ID }

// Validate reports, as [ErrInvalid], why an item cannot exist: a collection
// that does not match [a-z][a-z0-9_-]{0,31}, or an id that is empty, longer than
// [MaxIDBytes], not UTF-8, or has control characters. "." and ".." are refused
// because a URL path cannot carry them unchanged.
func (i Item) Validate() error {
	if err := ValidateCollection(i.Collection); err != nil {
		return err
	}
	if i.ID == "." || i.ID == ".." {
		return fmt.Errorf("%w: item id must not be %q", ErrInvalid, i.ID)
	}
	return validateText("item id", i.ID, MaxIDBytes)
}

// ValidateCollection reports, as [ErrInvalid], why name is not a collection.
func ValidateCollection(name string) error {
	if name == "" {
		return fmt.Errorf("%w: collection is empty", ErrInvalid)
	}
	if len(name) > MaxCollectionBytes {
		return fmt.Errorf("%w: collection is longer than %d bytes", ErrInvalid, MaxCollectionBytes)
	}
	for k := range len(name) {
		c := name[k]
		lower := c >= 'a' && c <= 'z'
		inner := c >= '0' && c <= '9' || c == '_' || c == '-'
		if !lower && (k == 0 || !inner) {
			return fmt.Errorf("%w: collection must match [a-z][a-z0-9_-]{0,31}", ErrInvalid)
		}
	}
	return nil
}

// User identifies who likes: always the subject of a verified token, or a user
// named by a trusted backend. Opaque, compared byte for byte.
type User string

// Validate reports, as [ErrInvalid], why a user cannot exist: empty, longer than
// [MaxUserBytes], not UTF-8, or with control characters.
func (u User) Validate() error { return validateText("user", string(u), MaxUserBytes) }

func validateText(what, s string, limit int) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: %s is empty", ErrInvalid, what)
	case len(s) > limit:
		return fmt.Errorf("%w: %s is longer than %d bytes", ErrInvalid, what, limit)
	case !utf8.ValidString(s):
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrInvalid, what)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%w: %s has a control character", ErrInvalid, what)
		}
	}
	return nil
}

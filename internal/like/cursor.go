package like

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// MaxCursorBytes bounds the text of a cursor.
const MaxCursorBytes = 256

const (
	cursorVersion  = 1
	cursorMACBytes = 16
)

// The two lists that are paged; part of what a cursor's MAC covers.
const (
	listLikers  = 'r'
	listLikedBy = 'd'
)

var cursorText = base64.RawURLEncoding.Strict()

// Cursors seals list positions into opaque text and opens them again. A cursor
// carries the whole position (no row has to exist any more when it comes back),
// is authenticated with HMAC-SHA-256 (RFC 2104, cut to 128 bits), and opens only
// on the list that it was sealed for. Safe for concurrent use.
type Cursors struct{ key []byte }

// NewCursors returns a codec for one key of at least 32 secret bytes. Nodes that
// serve the same clients need the same key. The caller must not change key.
func NewCursors(key []byte) (*Cursors, error) {
	if len(key) < 32 {
		return nil, fmt.Errorf("%w: cursor key is shorter than 32 bytes", ErrInvalid)
	}
	return &Cursors{key: key}, nil
}

// SealLiker returns the cursor behind f in the list of those who like f.Item.
func (c *Cursors) SealLiker(f Fact) string {
	return c.seal(listLikers, itemKey(f.Item), f.Since, string(f.User))
}

// OpenLiker returns the position in the list of those who like item, or
// [ErrInvalid] for text that SealLiker did not return for this item.
func (c *Cursors) OpenLiker(item Item, text string) (Fact, error) {
	since, user, err := c.open(listLikers, itemKey(item), text)
	if err != nil {
		return Fact{}, err
	}
	return Fact{Item: item, User: User(user), Since: since}, nil
}

// SealLiked returns the cursor behind f in the list of what f.User likes.
func (c *Cursors) SealLiked(f Fact) string {
	return c.seal(listLikedBy, string(f.User), f.Since, itemKey(f.Item))
}

// OpenLiked returns the position in the list of what user likes, or
// [ErrInvalid] for text that SealLiked did not return for this user.
func (c *Cursors) OpenLiked(user User, text string) (Fact, error) {
	since, key, err := c.open(listLikedBy, string(user), text)
	if err != nil {
		return Fact{}, err
	}
	n := int(key[0])
	item := Item{Collection: key[1 : 1+n], ID: key[1+n:]}
	return Fact{Item: item, User: user, Since: since}, nil
}

// itemKey joins an item unambiguously: the collection's length comes first.
func itemKey(i Item) string { return string(rune(len(i.Collection))) + i.Collection + i.ID }

func (c *Cursors) seal(list byte, owner string, since Stamp, tie string) string {
	b := make([]byte, 0, 1+8+len(tie)+cursorMACBytes)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(since))
	b = append(b, tie...)
	b = append(b, c.mac(list, owner, b)...)
	return cursorText.EncodeToString(b)
}

func (c *Cursors) open(list byte, owner, text string) (Stamp, string, error) {
	bad := fmt.Errorf("%w: cursor is not one that this list returned", ErrInvalid)
	if len(text) > MaxCursorBytes {
		return 0, "", bad
	}
	b, err := cursorText.DecodeString(text)
	// The decoder skips line breaks, so only the canonical text is accepted.
	if err != nil || cursorText.EncodeToString(b) != text {
		return 0, "", bad
	}
	body := len(b) - cursorMACBytes
	if body < 1+8+1 || b[0] != cursorVersion || !hmac.Equal(b[body:], c.mac(list, owner, b[:body])) {
		return 0, "", bad
	}
	return Stamp(binary.BigEndian.Uint64(b[1:9])), string(b[9:body]), nil
}

func (c *Cursors) mac(list byte, owner string, body []byte) []byte {
	h := hmac.New(sha256.New, c.key)
	h.Write([]byte{list, byte(len(owner))})
	h.Write([]byte(owner))
	h.Write(body)
	return h.Sum(nil)[:cursorMACBytes]
}

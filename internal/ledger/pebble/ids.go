package pebble

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strconv"

	"likewise/internal/like"
)

// A name is stored as one head byte and what it announces, so that it is short,
// reversible, and never a prefix of another name:
//
//	01–08  a canonical decimal that fits 64 bits, in that many big-endian bytes
//	10     a canonical (lower-case, hyphenated) UUID, in 16 bytes
//	80–FF  any other text of head−7F bytes, as it is
const (
	headUUID    = 0x10
	headRaw     = 0x7f
	uuidTextLen = 36
)

// appendID appends the stored form of a valid item id or user.
func appendID(dst []byte, s string) []byte {
	if n, ok := parseDecimal(s); ok {
		size := max(1, (bits.Len64(n)+7)/8)
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], n)
		dst = append(dst, byte(size))
		return append(dst, b[8-size:]...)
	}
	if u, ok := parseUUID(s); ok {
		return append(append(dst, headUUID), u[:]...)
	}
	return append(append(dst, byte(headRaw+len(s))), s...)
}

// cutID returns the name at the front of a key part, and what follows it. It reads
// what appendID writes, and nothing else.
func cutID(b []byte) (string, []byte, error) {
	if len(b) == 0 {
		return "", nil, errBadKey
	}
	head, rest := b[0], b[1:]
	var size int
	switch {
	case head >= 1 && head <= 8:
		size = int(head)
	case head == headUUID:
		size = 16
	case head > headRaw:
		size = int(head) - headRaw
	}
	if size == 0 || len(rest) < size {
		return "", nil, errBadKey
	}
	body, rest := rest[:size], rest[size:]
	switch {
	case head <= 8:
		if body[0] == 0 && size > 1 {
			return "", nil, errBadKey
		}
		var n uint64
		for _, c := range body {
			n = n<<8 | uint64(c)
		}
		return strconv.FormatUint(n, 10), rest, nil
	case head == headUUID:
		return formatUUID(body), rest, nil
	}
	name := string(body)
	_, decimal := parseDecimal(name)
	_, uuid := parseUUID(name)
	if decimal || uuid {
		return "", nil, errBadKey // it has a shorter form, and one name has one form
	}
	return name, rest, nil
}

var errBadKey = fmt.Errorf("%w: a stored key cannot be read", like.ErrCorrupt)

// parseDecimal accepts exactly what strconv.FormatUint prints, so that "1" and
// "01" stay two names.
func parseDecimal(s string) (uint64, bool) {
	if s == "" || len(s) > 20 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n uint64
	for i := range len(s) {
		d := uint64(s[i] - '0')
		if d > 9 {
			return 0, false
		}
		hi, lo := bits.Mul64(n, 10)
		sum, carry := bits.Add64(lo, d, 0)
		if hi != 0 || carry != 0 {
			return 0, false
		}
		n = sum
	}
	return n, true
}

// parseUUID accepts exactly what formatUUID prints.
func parseUUID(s string) (u [16]byte, ok bool) {
	if len(s) != uuidTextLen || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return u, false
	}
	digits := make([]byte, 0, 32)
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
			digits = append(digits, c)
		case c != '-':
			return u, false
		}
	}
	if len(digits) != 32 {
		return u, false
	}
	_, err := hex.Decode(u[:], digits)
	return u, err == nil
}

func formatUUID(u []byte) string {
	b := make([]byte, 0, uuidTextLen)
	for i, c := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, []byte{c})
	}
	return string(b)
}

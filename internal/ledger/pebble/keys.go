package pebble

import (
	"encoding/binary"

	"likewise/internal/like"
)

// First bytes of the key spaces.
const (
	spaceFact  = 'f'
	spaceList  = 'l'
	spaceTotal = 't'
	spaceMeta  = 'm'
)

var metaSequence = []byte{spaceMeta, 's'}

const stampBytes = 8

// appendItem appends an item: the collection behind its length, then the id.
func appendItem(dst []byte, it like.Item) []byte {
	dst = append(dst, byte(len(it.Collection)))
	dst = append(dst, it.Collection...)
	return appendID(dst, it.ID)
}

func cutItem(b []byte) (like.Item, []byte, error) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return like.Item{}, nil, errBadKey
	}
	n := int(b[0])
	id, rest, err := cutID(b[1+n:])
	return like.Item{Collection: string(b[1 : 1+n]), ID: id}, rest, err
}

// factKey is f user item.
func factKey(dst []byte, u like.User, it like.Item) []byte {
	dst = appendID(append(dst, spaceFact), string(u))
	return appendItem(dst, it)
}

// userPrefix bounds the facts of one user.
func userPrefix(u like.User) []byte { return appendID([]byte{spaceFact}, string(u)) }

func parseFact(key, value []byte) (like.Fact, error) {
	user, rest, err := cutID(key[1:])
	if err != nil {
		return like.Fact{}, err
	}
	item, rest, err := cutItem(rest)
	if err != nil || len(rest) != 0 {
		return like.Fact{}, errBadKey
	}
	since, err := parseSince(value)
	return like.Fact{Item: item, User: like.User(user), Since: since}, err
}

func sinceValue(s like.Stamp) []byte { return binary.BigEndian.AppendUint64(nil, uint64(s)) }

func parseSince(value []byte) (like.Stamp, error) {
	if len(value) != stampBytes {
		return 0, errBadKey
	}
	return like.Stamp(binary.BigEndian.Uint64(value)), nil
}

// listKey is l item ^since user: of one item the newest comes first, and equal
// stamps are ordered by the stored form of the user.
func listKey(dst, item []byte, since like.Stamp, user []byte) []byte {
	dst = append(append(dst, spaceList), item...)
	dst = binary.BigEndian.AppendUint64(dst, ^uint64(since))
	return append(dst, user...)
}

// listPrefix bounds the list of one item.
func listPrefix(it like.Item) []byte { return appendItem([]byte{spaceList}, it) }

func parseList(key []byte) (like.Fact, error) {
	item, rest, err := cutItem(key[1:])
	if err != nil || len(rest) < stampBytes {
		return like.Fact{}, errBadKey
	}
	since := like.Stamp(^binary.BigEndian.Uint64(rest))
	user, rest, err := cutID(rest[stampBytes:])
	if err != nil || len(rest) != 0 {
		return like.Fact{}, errBadKey
	}
	return like.Fact{Item: item, User: like.User(user), Since: since}, nil
}

// totalKey is t item.
func totalKey(it like.Item) []byte { return appendItem([]byte{spaceTotal}, it) }

func appendTotal(dst []byte, count int64, version uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(count)), version)
}

func parseTotal(value []byte) (count int64, version uint64, err error) {
	c, n := binary.Uvarint(value)
	if n <= 0 {
		return 0, 0, errBadKey
	}
	v, k := binary.Uvarint(value[n:])
	if k <= 0 || n+k != len(value) {
		return 0, 0, errBadKey
	}
	return int64(c), v, nil
}

// prefixEnd returns the smallest key behind every key with the prefix.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

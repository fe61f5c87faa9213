package ledger

import "likewise/internal/like"

// Sharded is a ledger whose items are spread over shards that fail one without the
// other. A ledger need not be one. One call with items of several shards fails with any
// of them, so whoever calls for many callers at once calls for each shard.
type Sharded interface {
	// Shards returns how many there are. It never changes.
	Shards() int
	// ShardOf returns the shard of an item, from 0. It never changes.
	ShardOf(item like.Item) int
}

// Shards returns how many shards a ledger has and which one has an item. What is not
// [Sharded] is one shard.
func Shards(l any) (n int, of func(like.Item) int) {
	if s, ok := l.(Sharded); ok {
		return s.Shards(), s.ShardOf
	}
	return 1, func(like.Item) int { return 0 }
}

package memory

import "likewise/internal/like"

// Skew falsifies the total of an item by delta, for tests of the audit.
func (l *Ledger) Skew(item like.Item, delta int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broadcast.Publish([]like.Total{l.store.move(item, delta)})
}

// Unlist drops a user's entry from the list of an item and leaves the fact, for
// tests of the audit.
func (l *Ledger) Unlist(item like.Item, user like.User) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := like.Fact{Item: item, User: user, Since: l.store.state(pair{item, user}).Since}
	l.store.likers[item] = remove(l.store.likers[item], f, byUser)
}

// Phantom adds a fact's entry to the list of its item without the fact, for tests
// of the audit.
func (l *Ledger) Phantom(f like.Fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.store.likers[f.Item] = insert(l.store.likers[f.Item], f, byUser)
}

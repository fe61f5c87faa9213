package memory

import (
	"context"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Liked implements [ledger.Reader].
func (l *Ledger) Liked(ctx context.Context, user like.User, items []like.Item) ([]like.State, error) {
	if err := user.Validate(); err != nil {
		return nil, err
	}
	if err := ledger.CheckItems(items); err != nil {
		return nil, err
	}
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	states := make([]like.State, len(items))
	for k, item := range items {
		states[k] = l.store.state(pair{item, user})
	}
	return states, nil
}

// Totals implements [ledger.Reader].
func (l *Ledger) Totals(ctx context.Context, items []like.Item) ([]like.Total, error) {
	if err := ledger.CheckItems(items); err != nil {
		return nil, err
	}
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	totals := make([]like.Total, len(items))
	for k, item := range items {
		totals[k] = l.store.total(item)
	}
	return totals, nil
}

// Likers implements [ledger.Reader]; facts of one Since are ordered by user.
func (l *Ledger) Likers(ctx context.Context, item like.Item, after like.Fact, n int) (ledger.Page, error) {
	if err := item.Validate(); err != nil {
		return ledger.Page{}, err
	}
	if err := ledger.CheckPage(n); err != nil {
		return ledger.Page{}, err
	}
	if err := l.lock(ctx); err != nil {
		return ledger.Page{}, err
	}
	defer l.mu.Unlock()
	return page(l.store.likers[item], after, n, byUser), nil
}

// LikedBy implements [ledger.Reader]; facts of one Since are ordered by item.
func (l *Ledger) LikedBy(ctx context.Context, user like.User, after like.Fact, n int) (ledger.Page, error) {
	if err := user.Validate(); err != nil {
		return ledger.Page{}, err
	}
	if err := ledger.CheckPage(n); err != nil {
		return ledger.Page{}, err
	}
	if err := l.lock(ctx); err != nil {
		return ledger.Page{}, err
	}
	defer l.mu.Unlock()
	return page(l.store.likedBy[user], after, n, byItem), nil
}

// LikersAmong implements [ledger.Reader].
func (l *Ledger) LikersAmong(ctx context.Context, item like.Item, users []like.User) ([]like.User, error) {
	if err := item.Validate(); err != nil {
		return nil, err
	}
	if err := ledger.CheckUsers(users); err != nil {
		return nil, err
	}
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	var likers []like.User
	seen := map[like.User]bool{}
	for _, user := range users {
		if l.store.state(pair{item, user}).Liked && !seen[user] {
			seen[user] = true
			likers = append(likers, user)
		}
	}
	return likers, nil
}

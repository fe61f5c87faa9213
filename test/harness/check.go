package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Checker compares the views of a service that is at rest with what was
// acknowledged.
type Checker struct {
	Client *Client
	Acks   *Acks
	// Within is how long count and list may take to agree after the last
	// acknowledgement or restart.
	Within time.Duration
	// Users bounds how many users are asked for their own view; 0 asks all. A
	// larger set is sampled at random.
	Users int
}

// Views holds, per item, who likes it, as its liker list says.
type Views map[Item]map[string]bool

// Check returns nil when, for every pair that was ever begun:
//
//   - the count of the item is, on every node, the number of users in its walked list;
//   - every acknowledged operation is visible, and an unanswered one is either
//     in all views or in none;
//   - the user's own state and own list say what the liker list says.
//
// Then it audits everything and wants the drift metric to be 0.
func (c *Checker) Check(ctx context.Context) error {
	views, err := c.Settle(ctx)
	if err != nil {
		return err
	}
	if err := c.own(ctx, views); err != nil {
		return err
	}
	return c.drift(ctx)
}

// Settle waits until counts, lists and acknowledgements agree, for Within at
// most, and returns the lists.
func (c *Checker) Settle(ctx context.Context) (views Views, err error) {
	deadline, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	pollErr := Poll(deadline, 50*time.Millisecond, func() (bool, error) {
		views, err = c.views(ctx)
		return err == nil, nil
	})
	if pollErr != nil && err == nil {
		err = pollErr
	}
	return views, err
}

func (c *Checker) views(ctx context.Context) (Views, error) {
	views := Views{}
	pairs := c.Acks.Pairs()
	for _, p := range pairs {
		views[p.Item] = nil
	}
	if err := c.walk(ctx, views); err != nil {
		return nil, err
	}
	var wrong []error
	for _, p := range pairs {
		liked, unliked := c.Acks.May(p.User, p.Item)
		if in := views[p.Item][p.User]; in && !liked || !in && !unliked {
			wrong = append(wrong, fmt.Errorf("%s on %v: in the liker list %v, acknowledged otherwise", p.User, p.Item, in))
		}
	}
	wrong = append(wrong, c.strangers(views, pairs)...)
	for _, node := range c.Client.Each() {
		wrong = append(wrong, c.counts(ctx, node, views)...)
	}
	return views, firstOf(wrong)
}

// walk fills in the liker lists of all items, a few at a time.
func (c *Checker) walk(ctx context.Context, views Views) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for _, item := range itemsOf(views) {
		g.Go(func() error {
			likers, _, err := c.Client.WalkLikers(ctx, item, MaxPage)
			set := make(map[string]bool, len(likers))
			for _, l := range likers {
				set[l.User] = true
			}
			mu.Lock()
			defer mu.Unlock()
			views[item] = set
			return err
		})
	}
	return g.Wait()
}

// strangers finds likers who never sent anything.
func (c *Checker) strangers(views Views, pairs []Pair) []error {
	known := make(map[Pair]bool, len(pairs))
	for _, p := range pairs {
		known[p] = true
	}
	var wrong []error
	for item, likers := range views {
		for user := range likers {
			if !known[Pair{user, item}] {
				wrong = append(wrong, fmt.Errorf("%s is in the liker list of %v and never liked it", user, item))
			}
		}
	}
	return wrong
}

// counts compares the counts of one node with the liker lists.
func (c *Checker) counts(ctx context.Context, node *Client, views Views) []error {
	var wrong []error
	for chunk := range slices.Chunk(itemsOf(views), MaxCounts) {
		counts, err := node.Counts(ctx, reader, chunk...)
		if err != nil {
			return append(wrong, err)
		}
		for _, got := range counts {
			if want := int64(len(views[got.Item])); got.Count != want {
				wrong = append(wrong, fmt.Errorf("%s: count of %v is %d, its liker list has %d", node.urls[0], got.Item, got.Count, want))
			}
		}
	}
	return wrong
}

// own compares what users see of themselves with the liker lists.
func (c *Checker) own(ctx context.Context, views Views) error {
	touched := map[string][]Item{}
	for _, p := range c.Acks.Pairs() {
		touched[p.User] = append(touched[p.User], p.Item)
	}
	users := make([]string, 0, len(touched))
	for u := range touched {
		users = append(users, u)
	}
	if c.Users > 0 && len(users) > c.Users {
		rand.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
		users = users[:c.Users]
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, user := range users {
		g.Go(func() error { return c.ownOf(ctx, views, user, touched[user]) })
	}
	return g.Wait()
}

func (c *Checker) ownOf(ctx context.Context, views Views, user string, items []Item) error {
	want := 0
	for chunk := range slices.Chunk(items, MaxCounts) {
		counts, err := c.Client.Counts(ctx, user, chunk...)
		if err != nil {
			return err
		}
		for _, got := range counts {
			in := views[got.Item][user]
			if got.Mine() != in {
				return fmt.Errorf("%s on %v: liked_by_me %v, in the liker list %v", user, got.Item, got.Mine(), in)
			}
			if in {
				want++
			}
		}
	}
	liked, err := c.Client.WalkLiked(ctx, user)
	if err != nil {
		return err
	}
	seen := map[Item]bool{}
	for _, l := range liked {
		if seen[l.Item] || !views[l.Item][user] {
			return fmt.Errorf("own list of %s has %v, twice or without a like", user, l.Item)
		}
		seen[l.Item] = true
	}
	if len(seen) != want {
		return fmt.Errorf("own list of %s has %d items, the liker lists %d", user, len(seen), want)
	}
	return nil
}

func (c *Checker) drift(ctx context.Context) error {
	if len(c.Client.admin) == 0 {
		return nil
	}
	if err := c.Client.Reconcile(ctx); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	drift, err := c.Client.Metric(ctx, DriftMetric)
	if err == nil && drift != 0 {
		err = fmt.Errorf("%s is %v", DriftMetric, drift)
	}
	return err
}

func itemsOf(views Views) []Item {
	items := make([]Item, 0, len(views))
	for i := range views {
		items = append(items, i)
	}
	return items
}

// firstOf joins the first few errors and says how many there are.
func firstOf(all []error) error {
	const show = 5
	if len(all) <= show {
		return errors.Join(all...)
	}
	return fmt.Errorf("%d differences, the first:\n%w", len(all), errors.Join(all[:show]...))
}

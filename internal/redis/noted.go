package redis

import (
	"hash/maphash"
	"sync"

	"likewise/internal/like"
)

// noted remembers, of the items that changed lately, the newest version that Redis
// has for sure. It is a table of fixed size, in which items displace each other:
// what was forgotten is written once more.
type noted struct {
	seed maphash.Seed

	mu    sync.Mutex
	slots [1 << 14]slot // guarded by mu
}

type slot struct{ item, version uint64 }

func newNoted() *noted { return &noted{seed: maphash.MakeSeed()} }

func (n *noted) add(totals ...like.Total) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range totals {
		item := maphash.Comparable(n.seed, t.Item)
		if s := &n.slots[item%uint64(len(n.slots))]; s.item != item || s.version < t.Version {
			*s = slot{item, t.Version}
		}
	}
}

// missing returns the totals that Redis may not have.
func (n *noted) missing(totals []like.Total) (missing []like.Total) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range totals {
		item := maphash.Comparable(n.seed, t.Item)
		if s := n.slots[item%uint64(len(n.slots))]; s.item != item || s.version < t.Version {
			missing = append(missing, t)
		}
	}
	return missing
}

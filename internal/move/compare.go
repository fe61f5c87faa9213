package move

import (
	"context"
	"hash/maphash"
	"iter"

	"golang.org/x/sync/errgroup"

	"likewise/internal/like"
)

// bucketBits is the logarithm of the number of sums that a comparison keeps of each
// side, at 24 bytes each.
const bucketBits = 20

// hasher hashes facts with keys of its own.
type hasher struct {
	item, low, high maphash.Seed
	bits            int
}

func newHasher(bits int) hasher {
	return hasher{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed(), bits}
}

// bucket returns where the facts of an item are summed.
func (h hasher) bucket(item like.Item) uint64 {
	return maphash.Comparable(h.item, item) >> (64 - h.bits)
}

// sum is the number of facts and the sums, modulo 2^64 each, of two hashes of them:
// equal for two sets of facts in any order if the sets are.
type sum struct{ facts, low, high uint64 }

// sums are those of all facts of one ledger.
type sums struct {
	hasher
	buckets []sum
	facts   int64
}

func newSums(h hasher) *sums { return &sums{hasher: h, buckets: make([]sum, 1<<h.bits)} }

func (s *sums) add(f like.Fact) {
	b := &s.buckets[s.bucket(f.Item)]
	b.facts++
	b.low += maphash.Comparable(s.low, f)
	b.high += maphash.Comparable(s.high, f)
	s.facts++
}

func (s *sums) addAll(facts iter.Seq2[like.Fact, error], seen func(n int)) error {
	for f, err := range facts {
		if err != nil {
			return err
		}
		s.add(f)
		seen(1)
	}
	return nil
}

// unequal is a set of buckets whose sums differ.
type unequal struct {
	hasher
	set     []bool
	buckets int
}

func (u *unequal) has(item like.Item) bool { return u.set[u.bucket(item)] }

func (s *sums) compare(other *sums) *unequal {
	u := &unequal{hasher: s.hasher, set: make([]bool, len(s.buckets))}
	for k := range s.buckets {
		if s.buckets[k] != other.buckets[k] {
			u.set[k] = true
			u.buckets++
		}
	}
	return u
}

// compareSums sums the facts of both ledgers.
func (m *mover) compareSums(ctx context.Context) (*unequal, error) {
	h := newHasher(m.bucketBits)
	source, target := newSums(h), newSums(h)
	defer m.show.stage("comparing everything")()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return named("source", source.addAll(m.source.Export(ctx), m.show.count)) })
	group.Go(func() error { return named("target", target.addAll(m.target.Export(ctx), m.show.count)) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	m.report.Likes = source.facts
	return source.compare(target), nil
}

// compareAll compares everything and adds the suspects to the changed items. It
// returns in how many of the sums there is a difference.
func (m *mover) compareAll(ctx context.Context) (int, error) {
	m.changes.beginAll()
	u, err := m.compareSums(ctx)
	if err != nil || u.buckets == 0 {
		return 0, err
	}
	defer m.show.stage("listing what differs")()
	for _, side := range []struct {
		name string
		Lister
	}{{"source", m.source}, {"target", m.target}} {
		for f, err := range side.Export(ctx) {
			if err != nil {
				return 0, named(side.name, err)
			}
			if m.show.count(1); u.has(f.Item) {
				m.changes.add(f.Item)
			}
		}
	}
	return u.buckets, nil
}

package pebble

import (
	"context"

	"github.com/bits-and-blooms/bloom/v3"
	pdb "github.com/cockroachdb/pebble/v2"
)

const (
	filterFirstKeys = 1 << 20
	filterGrowth    = 4
	filterErrorRate = 0.01
	filterBitsKey   = 9.6 // bits for one key at that rate
)

// filter answers "certainly absent" for keys that the store does not hold, so
// that a new like costs no read. It may only save a read: any other answer is
// settled by the store. Growing adds a layer, as in a scalable Bloom filter
// (Almeida et al., 2007); the last layer just fills up when the budget is spent.
// It belongs to the writer.
type filter struct {
	layers []*bloom.BloomFilter
	room   uint    // keys that the last layer still takes at its error rate
	size   uint    // keys that the last layer was made for
	budget float64 // bits left for more layers
}

// newFilter returns a filter of at most maxBytes, or nil for less than one layer.
func newFilter(maxBytes int64) *filter {
	f := &filter{budget: float64(maxBytes) * 8, size: filterFirstKeys / filterGrowth}
	if !f.grow() {
		return nil
	}
	return f
}

func (f *filter) grow() bool {
	size := f.size * filterGrowth
	cost := float64(size) * filterBitsKey
	if cost > f.budget {
		return false
	}
	f.budget -= cost
	f.size, f.room = size, size
	f.layers = append(f.layers, bloom.NewWithEstimates(size, filterErrorRate))
	return true
}

func (f *filter) add(key []byte) {
	if f.room == 0 && !f.grow() {
		f.room = 1
	}
	f.room--
	f.layers[len(f.layers)-1].Add(key)
}

func (f *filter) mayHave(key []byte) bool {
	for _, l := range f.layers {
		if l.Test(key) {
			return true
		}
	}
	return false
}

// gate is the writer's use of the filter while it is being built in the
// background after a start: until then every key may exist, and keys written
// meanwhile are kept for it.
type gate struct {
	filter  *filter
	built   <-chan *filter // nil when nothing is being built
	waiting []byte         // keys written since the build began, each behind its length
	room    int            // bytes that waiting may take; beyond it there will be no filter
}

// mayHave reports whether the store must be asked about key.
func (g *gate) mayHave(key []byte) bool { return g.filter == nil || g.filter.mayHave(key) }

// add notes a key that is about to be written.
func (g *gate) add(key []byte) {
	switch {
	case g.filter != nil:
		g.filter.add(key)
	case g.built != nil && len(g.waiting) > g.room:
		g.built, g.waiting = nil, nil
	case g.built != nil:
		g.waiting = append(append(g.waiting, byte(len(key)>>8), byte(len(key))), key...)
	}
}

// poll takes over a filter whose build has ended.
func (g *gate) poll() {
	if g.built == nil {
		return
	}
	select {
	case f := <-g.built:
		g.built = nil
		for b := g.waiting; f != nil && len(b) > 0; {
			n := int(b[0])<<8 | int(b[1])
			f.add(b[2 : 2+n])
			b = b[2+n:]
		}
		g.filter, g.waiting = f, nil
	default:
	}
}

// buildFilter adds every fact and total of a snapshot to f, and closes the
// snapshot. It returns nil, for no filter, when it is interrupted or fails: the
// filter only saves reads, so the store goes on without it.
func buildFilter(ctx context.Context, snap *pdb.Snapshot, f *filter) *filter {
	defer func() { _ = snap.Close() }()
	for _, space := range []byte{spaceFact, spaceTotal} {
		read := 0
		err := scan(snap, []byte{space}, []byte{space + 1}, func(key, _ []byte) (bool, error) {
			f.add(key)
			read++
			return read%checkEvery != 0 || ctx.Err() == nil, nil
		})
		if err != nil || ctx.Err() != nil {
			return nil
		}
	}
	return f
}

package pebble

// total is the writer's copy of one item's total.
type total struct {
	count   int64
	version uint64
	touched bool // changed in the batch being folded
}

// shown is the count that callers see: damage may make a total negative, which
// the audit reports and no caller is shown.
func (t *total) shown() int64 { return max(t.count, 0) }

// totalsGeneration is the number of totals in one generation, of about 100 bytes
// each.
const totalsGeneration = 1 << 16

// totalCache keeps the totals that the writer used last. Two generations bound
// it: what is used moves to the young one, and when that is full the old one is
// dropped. It belongs to the writer.
type totalCache struct {
	young, old map[string]*total
}

func newTotalCache() *totalCache {
	return &totalCache{young: map[string]*total{}, old: map[string]*total{}}
}

func (c *totalCache) get(key []byte) *total {
	if t, ok := c.young[string(key)]; ok {
		return t
	}
	t, ok := c.old[string(key)]
	if ok {
		c.put(key, t)
	}
	return t
}

func (c *totalCache) put(key []byte, t *total) {
	if len(c.young) >= totalsGeneration {
		c.old, c.young = c.young, make(map[string]*total, totalsGeneration)
	}
	c.young[string(key)] = t
}

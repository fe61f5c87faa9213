package pebble

import (
	"errors"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// folder turns commands into one atomic batch. It belongs to the writer and is
// reused from batch to batch.
type folder struct {
	db     *pdb.DB
	clock  *like.Clock
	gate   gate
	totals *totalCache

	pairs   map[string]*pair
	order   []*pair // pairs in order of first appearance
	touched []moved
	keys    []byte // scratch for the key being looked up
}

// moved is a total that the batch changes.
type moved struct {
	*total
	item like.Item
}

// pair is one user and item in the batch: its state before the batch, and now.
type pair struct {
	fact         []byte // key of the fact
	user, item   []byte // parts of it
	before, then like.State
}

func newFolder(db *pdb.DB, clock *like.Clock, g gate) *folder {
	return &folder{
		db:     db,
		clock:  clock,
		gate:   g,
		totals: newTotalCache(),
		pairs:  map[string]*pair{},
	}
}

// begin forgets the previous batch.
func (f *folder) begin() {
	clear(f.pairs)
	f.order = f.order[:0]
	for _, t := range f.touched {
		t.touched = false
	}
	f.touched = f.touched[:0]
	f.gate.poll()
}

// abandon forgets a batch that will not be written, with the totals it moved.
func (f *folder) abandon() {
	f.begin()
	f.totals = newTotalCache()
}

// fold folds one command and returns its answer and how many facts it added.
func (f *folder) fold(cmd *like.Command) (ledger.Ack, int, error) {
	p, err := f.pair(cmd)
	if err != nil {
		return ledger.Ack{}, 0, err
	}
	t, err := f.total(p.item)
	if err != nil {
		return ledger.Ack{}, 0, err
	}
	if p.then.Liked == (cmd.Op == like.OpLike) {
		return ledger.Ack{State: p.then, Count: t.shown(), Version: t.version}, 0, nil
	}
	stamp := f.clock.Next()
	at := stamp
	if cmd.At != 0 {
		at = cmd.At
	}
	var delta int
	p.then, delta = like.Fold(p.then, cmd.Op, at)
	f.move(t, cmd.Item, int64(delta), stamp)
	return ledger.Ack{State: p.then, Count: t.shown(), Version: t.version}, delta, nil
}

// move changes a total; the stamp of the change is its new version.
func (f *folder) move(t *total, it like.Item, delta int64, stamp like.Stamp) {
	t.count += delta
	t.version = uint64(stamp)
	if !t.touched {
		t.touched = true
		f.touched = append(f.touched, moved{total: t, item: it})
	}
}

// pair returns the pair of a command as earlier commands of the batch left it.
func (f *folder) pair(cmd *like.Command) (*pair, error) {
	f.keys = append(f.keys[:0], spaceFact)
	f.keys = appendID(f.keys, string(cmd.User))
	split := len(f.keys)
	f.keys = appendItem(f.keys, cmd.Item)
	if p, ok := f.pairs[string(f.keys)]; ok {
		return p, nil
	}
	p := &pair{fact: append([]byte(nil), f.keys...)}
	p.user, p.item = p.fact[1:split], p.fact[split:]
	value, err := f.get(p.fact)
	if err != nil {
		return nil, err
	}
	if value != nil {
		since, err := parseSince(value)
		if err != nil {
			return nil, err
		}
		p.before = like.State{Liked: true, Since: since}
	}
	p.then = p.before
	f.pairs[string(p.fact)] = p
	f.order = append(f.order, p)
	return p, nil
}

// total returns the total of an item as earlier commands of the batch left it.
func (f *folder) total(itemPart []byte) (*total, error) {
	f.keys = append(append(f.keys[:0], spaceTotal), itemPart...)
	if t := f.totals.get(f.keys); t != nil {
		return t, nil
	}
	value, err := f.get(f.keys)
	if err != nil {
		return nil, err
	}
	t := &total{}
	if value != nil {
		if t.count, t.version, err = parseTotal(value); err != nil {
			return nil, err
		}
	}
	f.totals.put(f.keys, t)
	return t, nil
}

// get reads the store unless the filter knows that the key is absent. A nil
// value is an absent key; the value stays valid until the next call.
func (f *folder) get(key []byte) ([]byte, error) {
	if !f.gate.mayHave(key) {
		return nil, nil
	}
	return getCopy(f.db, key)
}

// write puts the batch's net effect into b: at most one fact written per pair.
func (f *folder) write(b *pdb.Batch) error {
	for _, p := range f.order {
		if err := f.writePair(b, p); err != nil {
			return err
		}
	}
	var value []byte
	for _, t := range f.touched {
		f.keys = appendItem(append(f.keys[:0], spaceTotal), t.item)
		value = appendTotal(value[:0], t.count, t.version)
		f.gate.add(f.keys)
		if err := b.Set(f.keys, value, nil); err != nil {
			return err
		}
	}
	return nil
}

// changed returns the totals that the batch moved.
func (f *folder) changed() []like.Total {
	totals := make([]like.Total, 0, len(f.touched))
	for _, t := range f.touched {
		totals = append(totals, like.Total{Item: t.item, Count: t.shown(), Version: t.version})
	}
	return totals
}

func (f *folder) writePair(b *pdb.Batch, p *pair) error {
	if p.before == p.then {
		return nil
	}
	var errs error
	if p.before.Liked {
		f.keys = listKey(f.keys[:0], p.item, p.before.Since, p.user)
		errs = errors.Join(errs, b.Delete(f.keys, nil))
	}
	if !p.then.Liked {
		return errors.Join(errs, b.Delete(p.fact, nil))
	}
	f.gate.add(p.fact)
	f.keys = listKey(f.keys[:0], p.item, p.then.Since, p.user)
	return errors.Join(errs, b.Set(f.keys, nil, nil), b.Set(p.fact, sinceValue(p.then.Since), nil))
}

// getCopy returns a copy of a value, or nil when the key is absent.
func getCopy(r pdb.Reader, key []byte) ([]byte, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pdb.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError(err)
	}
	value = append([]byte{}, value...)
	return value, closer.Close()
}

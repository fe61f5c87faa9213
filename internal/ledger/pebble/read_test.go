package pebble

import (
	"errors"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	pdb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"likewise/internal/like"
)

// TestSeekEach compares one iterator over many keys with a lookup of each: keys that
// exist or not, repeated, in any order.
func TestSeekEach(t *testing.T) {
	l, err := open(drillConfig(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := newRand(drillSeed(t))
	for i := range 400 {
		user, id := like.User("u"+strconv.Itoa(i%3)), strconv.Itoa(r.IntN(300))
		cmd := like.Command{User: user, Item: like.Item{Collection: "posts", ID: id}, Op: like.OpLike}
		if _, err := l.Apply(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{0, 1, 2, 50, 100} {
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = factKey(nil, "u1", like.Item{Collection: "posts", ID: strconv.Itoa(r.IntN(300))})
		}
		want, got := map[int]string{}, map[int]string{}
		for i, key := range keys {
			value, err := getCopy(l.db, key)
			if err != nil {
				t.Fatal(err)
			}
			if value != nil {
				want[i] = string(value)
			}
		}
		err := seekEach(l.db, userPrefix("u1"), keys, func(i int, value []byte) error {
			got[i] = string(value)
			return nil
		})
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%d keys: %v (-want +got):\n%s", n, err, d)
		}
	}
}

// TestReadErrorIsNoAnswer fails each read of a table in turn: a page of states must be
// right or an error, never "not liked" for what could not be read.
func TestReadErrorIsNoAnswer(t *testing.T) {
	var armed atomic.Bool
	var left, fired atomic.Int64
	cfg := drillConfig(faultFS(vfs.NewCrashableMem(), func(op errorfs.Op) error {
		if armed.Load() && op.Kind == errorfs.OpFileReadAt && path.Ext(op.Path) == ".sst" && left.Add(-1) == 0 {
			fired.Add(1)
			return errors.New("the disk cannot read this block")
		}
		return nil
	}))
	cfg.CacheBytes = 0
	cfg.MemtableBytes = 64 << 10 // its size counts as cache
	items := make([]like.Item, 100)
	for i := range items {
		items[i] = like.Item{Collection: "posts", ID: strconv.Itoa(i * 20)}
	}
	fillTables(t, cfg, 2000)
	for n := int64(1); n < 40; n++ {
		l, err := open(cfg) // with an empty cache
		if err != nil {
			t.Fatal(err)
		}
		left.Store(n)
		armed.Store(true)
		states, err := l.Liked(t.Context(), "u", items)
		armed.Store(false)
		for i, s := range states {
			if err == nil && !s.Liked {
				t.Errorf("read %d failed, and %v was answered as not liked", n, items[i])
				break
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if fired.Load() == 0 {
		t.Error("no read failed")
	}
}

// fillTables makes one user like n items, and puts them into tables.
func fillTables(t *testing.T, cfg Config, n int) {
	t.Helper()
	l, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cmds := make([]like.Command, n)
	for i := range cmds {
		cmds[i] = like.Command{User: "u", Item: like.Item{Collection: "posts", ID: strconv.Itoa(i)}, Op: like.OpLike}
	}
	for part := range slices.Chunk(cmds, 1000) {
		if _, err := l.ApplyMany(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.db.Flush(), l.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false), l.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestNewestRows compares the heap with a sort, at every position and page size.
func TestNewestRows(t *testing.T) {
	r := newRand(drillSeed(t))
	for range 200 {
		rows := make([]row, r.IntN(60))
		for i := range rows {
			item := like.Item{Collection: "posts", ID: strconv.Itoa(i)}
			rows[i] = row{since: like.Stamp(r.IntN(20)), item: appendItem(nil, item)} // with ties
		}
		sorted := slices.SortedFunc(slices.Values(rows), row.compare)
		n := 1 + r.IntN(20)
		h := newestRows{keep: n + 1}
		if len(sorted) > 0 && r.IntN(2) == 0 {
			at := r.IntN(len(sorted))
			h.after = &row{since: sorted[at].since, item: sorted[at].item}
			sorted = sorted[at+1:]
		}
		for _, w := range rows {
			h.add(w.since, w.item)
		}
		page, err := h.page("u", n)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]like.Fact, min(n, len(sorted)))
		for i := range want {
			item, _, err := cutItem(sorted[i].item)
			if err != nil {
				t.Fatal(err)
			}
			want[i] = like.Fact{Item: item, User: "u", Since: sorted[i].since}
		}
		if d := cmp.Diff(want, page.Facts); d != "" || page.More != (len(sorted) > n) {
			t.Fatalf("more %v of %d (-want +got):\n%s", page.More, len(sorted)-n, d)
		}
	}
}

// TestFilterNeverForgets adds keys through every layer, beyond the budget of the last.
func TestFilterNeverForgets(t *testing.T) {
	f := newFilter(2 << 20)
	if f == nil {
		t.Fatal("no filter for 2 MiB")
	}
	f.size, f.room, f.budget = 100, 100, 100*filterBitsKey*(4+16)
	key := func(i int) []byte { return strconv.AppendInt([]byte("key"), int64(i), 10) }
	for i := range 5000 {
		f.add(key(i))
	}
	for i := range 5000 {
		if !f.mayHave(key(i)) {
			t.Fatalf("key %d is forgotten", i)
		}
	}
	if len(f.layers) != 3 {
		t.Errorf("%d layers, want 3: the budget is two more, then the last fills up", len(f.layers))
	}
	if newFilter(1<<20) != nil {
		t.Error("a filter of less than one layer")
	}
}

func TestFilterSavesReads(t *testing.T) {
	f := newFilter(2 << 20)
	for i := range 10_000 {
		f.add(strconv.AppendInt([]byte("key"), int64(i), 10))
	}
	wrong := 0
	for i := range 10_000 {
		if f.mayHave(strconv.AppendInt([]byte("other"), int64(i), 10)) {
			wrong++
		}
	}
	if wrong > 300 {
		t.Errorf("%d of 10000 absent keys may be there, want about 1 %%", wrong)
	}
}

// TestFilterBuiltUnderWrites writes while the filter is being built from a snapshot:
// whatever the build saw, no key that the store holds may be missing from it.
func TestFilterBuiltUnderWrites(t *testing.T) {
	r := newRand(drillSeed(t))
	db, err := pdb.Open("db", &pdb.Options{FS: vfs.NewMem(), Logger: engineLogger{log: DefaultConfig().Logger}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	present := map[string]bool{}
	set := func(i int) []byte {
		key := factKey(nil, like.User("u"+strconv.Itoa(i)), like.Item{Collection: "posts", ID: "1"})
		if r.IntN(3) == 0 {
			key = totalKey(like.Item{Collection: "posts", ID: strconv.Itoa(i)})
		}
		present[string(key)] = true
		return key
	}
	put := func(key []byte) {
		if err := db.Set(key, nil, pdb.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 500 {
		put(set(i))
	}
	built := make(chan *filter, 1)
	g := gate{built: built, room: 1 << 20}
	snap := db.NewSnapshot()
	done := make(chan struct{})
	for i := range 1000 {
		if i == 300 {
			go func() {
				defer close(done)
				built <- buildFilter(t.Context(), snap, newFilter(2<<20))
			}()
		}
		if i == 900 {
			<-done
		}
		g.poll()
		key := set(1000 + i)
		g.add(key)
		put(key)
		checkGate(t, &g, present, r)
	}
	if g.filter == nil || g.waiting != nil {
		t.Error("the filter was never taken over")
	}
	for key := range present {
		if !g.mayHave([]byte(key)) {
			t.Errorf("the filter misses %q", key)
		}
	}
}

// checkGate looks at a few keys that are present.
func checkGate(t *testing.T, g *gate, present map[string]bool, r *rand.Rand) {
	t.Helper()
	n := r.IntN(20)
	for key := range present {
		if n--; n < 0 {
			return
		}
		if !g.mayHave([]byte(key)) {
			t.Fatalf("the gate misses %q", key)
		}
	}
}

// TestExportLeftInAPanic checks that whoever reads may break off in any way: the
// admin API does it with a panic when the client has gone.
func TestExportLeftInAPanic(t *testing.T) {
	l := openTest(t, testConfig(t, newCrashFS(), time.Now))
	cmd := like.Command{Item: like.Item{Collection: "posts", ID: "1"}, User: "u", Op: like.OpLike}
	if _, err := l.Apply(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		for range l.Export(t.Context()) {
			panic("the client has gone")
		}
	}()
	if err := l.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

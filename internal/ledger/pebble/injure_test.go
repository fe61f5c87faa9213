package pebble

import (
	"errors"
	"testing"

	pdb "github.com/cockroachdb/pebble/v2"

	"likewise/internal/ledger"
	"likewise/internal/ledger/conformance"
)

// injure falsifies a store behind the writer's back. The writer keeps its copy of
// a total, so that is dropped by reaching into it through a correction.
func injure(tb testing.TB, l ledger.Ledger, in conformance.Injury) bool {
	tb.Helper()
	p := l.(*Ledger)
	f := in.Fact
	key := listKey(nil, appendItem(nil, f.Item), f.Since, appendID(nil, string(f.User)))
	var err error
	switch {
	case in.Skew != 0:
		err = skew(p, in)
	case in.Unlist:
		err = p.db.Delete(key, pdb.Sync)
	case in.Phantom:
		err = p.db.Set(key, nil, pdb.Sync)
	default:
		err = errors.New("an injury without a kind")
	}
	if err != nil {
		tb.Fatalf("injure %+v: %v", in, err)
	}
	return true
}

// skew moves a total without a fact: the correction of a drift that is not there.
func skew(l *Ledger, in conformance.Injury) error {
	r := newRequest(nil)
	r.correct = &correction{item: in.Fact.Item, delta: in.Skew}
	if err := l.queue.put(r); err != nil {
		return err
	}
	return <-r.done
}

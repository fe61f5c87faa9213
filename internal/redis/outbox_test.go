package redis

import (
	"fmt"
	"testing"
	"unsafe"

	"likewise/internal/like"
)

func TestOutboxKeepsTheNewest(t *testing.T) {
	b := newOutbox()
	b.add([]like.Total{total(1, 5, 5)}, false)
	b.add([]like.Total{total(1, 6, 6)}, true)
	b.add([]like.Total{total(1, 4, 4)}, false)
	if len(b.wake) != 1 {
		t.Error("nobody is woken")
	}
	if got := b.take(); len(got) != 1 || got[0] != (offer{total(1, 6, 6), true}) {
		t.Errorf("took %+v, want version 6 to be told", got)
	}
	// A read that is newer than a change tells all that the change would.
	b.add([]like.Total{total(1, 7, 7)}, false)
	b.add([]like.Total{total(1, 6, 6)}, true)
	if got := b.take(); len(got) != 1 || got[0] != (offer{total(1, 7, 7), true}) {
		t.Errorf("took %+v, want version 7 to be told", got)
	}
	if got := b.take(); len(got) != 0 {
		t.Errorf("took %+v of an empty outbox", got)
	}
}

func TestOutboxIsBounded(t *testing.T) {
	b := newOutbox()
	for i := range maxOffers {
		if b.add([]like.Total{total(i, 1, 1)}, false) != 0 {
			t.Fatalf("dropped after %d items", i)
		}
	}
	if dropped := b.add([]like.Total{total(-1, 1, 1), total(0, 2, 2), total(-2, 1, 1)}, true); dropped != 2 {
		t.Errorf("%d dropped, want the two new items", dropped)
	}
	seen := map[like.Item]uint64{}
	for batch := b.take(); len(batch) > 0; batch = b.take() {
		if len(batch) > maxBatch {
			t.Fatalf("a batch of %d", len(batch))
		}
		for _, o := range batch {
			seen[o.total.Item] = o.total.Version
		}
	}
	if len(seen) != maxOffers || seen[post(0)] != 2 {
		t.Errorf("%d items, and version %d of the first", len(seen), seen[post(0)])
	}
}

func TestOutboxKeepsNoRequestAlive(t *testing.T) {
	request := fmt.Sprint("posts/1", " and a long tail")
	item := like.Item{Collection: request[:5], ID: request[6:7]}
	b := newOutbox()
	b.add([]like.Total{{Item: item, Count: 1, Version: 1}}, false)
	b.add([]like.Total{{Item: item, Count: 2, Version: 2}}, false)
	got := b.take()[0].total.Item
	if got != item || unsafe.StringData(got.ID) == unsafe.StringData(item.ID) || unsafe.StringData(got.Collection) == unsafe.StringData(item.Collection) {
		t.Errorf("%v is cut out of the request", got)
	}
}

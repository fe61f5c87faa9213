package harness

import "testing"

func TestAcksRuleOutWhatWasOvertaken(t *testing.T) {
	item := Post("1")
	for _, tt := range []struct {
		name           string
		play           func(a *Acks)
		liked, unliked bool
	}{
		{"nothing was sent", func(*Acks) {}, false, true},
		{"a like was acknowledged", func(a *Acks) { a.Begin("u", item, true)(true) }, true, false},
		{"a like was refused", func(a *Acks) { a.Begin("u", item, true)(false) }, false, true},
		{"a like got no answer", func(a *Acks) { a.Begin("u", item, true) }, true, true},
		{"an unlike came after", func(a *Acks) {
			a.Begin("u", item, true)(true)
			a.Begin("u", item, false)(true)
		}, false, true},
		{"like and unlike overlapped", func(a *Acks) {
			first, second := a.Begin("u", item, true), a.Begin("u", item, false)
			second(true)
			first(true)
		}, true, true},
		{"an unanswered unlike may come late", func(a *Acks) {
			a.Begin("u", item, false)
			a.Begin("u", item, true)(true)
		}, true, true},
		{"a death does not say which one was last", func(a *Acks) {
			a.Begin("u", item, false)
			a.Begin("u", item, true)(true)
			a.Died()
		}, true, true},
		{"a like after the death is later than all before", func(a *Acks) {
			a.Begin("u", item, false)
			a.Died()
			a.Begin("u", item, true)(true)
		}, true, false},
		{"an operator erased it", func(a *Acks) {
			a.Begin("u", item, true)(true)
			a.Erased(func(p Pair) bool { return p.User == "u" })
		}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := NewAcks()
			tt.play(a)
			if liked, unliked := a.May("u", item); liked != tt.liked || unliked != tt.unliked {
				t.Errorf("may be liked %v, not liked %v; want %v, %v", liked, unliked, tt.liked, tt.unliked)
			}
		})
	}
}

func TestAcksCountWhatDied(t *testing.T) {
	a := NewAcks()
	a.Begin("u1", Post("1"), true)(true)
	a.Begin("u2", Post("1"), true)(false)
	a.Begin("u3", Post("1"), true)
	if n := a.Died(); n != 1 || a.Acked() != 1 {
		t.Errorf("%d died and %d acknowledged, want 1 and 1", n, a.Acked())
	}
	if n := a.Died(); n != 0 {
		t.Errorf("%d died again", n)
	}
}

package like

// State is what one user's fact about one item is: liked since a stamp, or the
// zero value for not liked.
type State struct {
	Liked bool
	Since Stamp
}

// Fact is one standing like. At most one exists per user and item. Lists are
// made of facts, and the last fact of a page is the position of the next.
type Fact struct {
	Item  Item
	User  User
	Since Stamp
}

// Total is the number of facts of an item. Version grows with every change of
// Count and never repeats with another Count, so of two totals of one item the
// one with the larger version is the newer. An item nobody ever liked has
// Count 0 and Version 0.
type Total struct {
	Item    Item
	Count   int64
	Version uint64
}

// Fold applies one operation, accepted at a stamp, to a state. It returns the
// state after it and the change of the item's number of facts: +1, 0 or −1.
// A like of a liked item keeps its first stamp. Every ledger folds with this
// function, which is why a repeat can never count twice.
func Fold(before State, op Op, at Stamp) (after State, delta int) {
	switch {
	case op == OpLike && !before.Liked:
		return State{Liked: true, Since: at}, 1
	case op == OpUnlike && before.Liked:
		return State{}, -1
	default:
		return before, 0
	}
}

package client

import "time"

// settling is how long a total may lag behind the answer to a command.
const settling = 3 * time.Second

// Optimistic is what a button shows of one item to one viewer: the viewer's wish at
// once, and everybody else's likes as they become known. It is a value without a
// clock or a network; each method returns the next value. The zero value knows
// nothing yet.
//
// The answer to a command includes the viewer's like. A total that arrives while a
// command is on its way, or shortly afterwards, may or may not include it; such a
// total is held back instead of being shown one too high or too low.
type Optimistic struct {
	total   int64
	counted bool // total includes the viewer's like
	liked   bool // as the server last confirmed it
	wish    bool // as the viewer wants it
	pending bool // a wish is not answered yet

	version uint64    // of the newest total seen
	held    *int64    // the newest total, not shown yet
	until   time.Time // until then a total is compared with the answer before it is shown
}

// Load takes in what a read answered. It changes nothing while a wish is pending,
// because the answer may be older than the wish.
func (o Optimistic) Load(answer Outcome) Optimistic {
	if o.pending {
		return o
	}
	o.total, o.counted, o.liked, o.wish = answer.Count, answer.Liked, answer.Liked, answer.Liked
	return o
}

// Want is a tap: liked is what the viewer wants.
func (o Optimistic) Want(liked bool) Optimistic {
	o.wish, o.pending = liked, true
	return o
}

// Answer takes in the answer to the command for the last wish.
func (o Optimistic) Answer(answer Outcome, now time.Time) Optimistic {
	o.total, o.counted, o.liked = answer.Count, answer.Liked, answer.Liked
	o.pending = o.wish != answer.Liked
	o.until = now.Add(settling)
	return o.Settle(now)
}

// Refuse gives the wish up: the server refused it for good.
func (o Optimistic) Refuse(now time.Time) Optimistic {
	o.wish, o.pending = o.liked, false
	return o.Settle(now)
}

// Observe takes in a count of a stream; one that is not newer changes nothing.
func (o Optimistic) Observe(count Count, now time.Time) Optimistic {
	if count.Version <= o.version {
		return o
	}
	o.version, o.held = count.Version, &count.Count
	return o.Settle(now)
}

// Settle shows a total that was held back, once enough time has passed. Call it
// before View where nothing else happens for a while.
func (o Optimistic) Settle(now time.Time) Optimistic {
	if o.held == nil || o.pending || now.Before(o.until) && !o.agrees(*o.held) {
		return o
	}
	o.total, o.counted, o.held = *o.held, o.liked, nil
	return o
}

// agrees reports whether a total cannot be older than the last answer: it moved in
// the direction of the command, or not at all.
func (o Optimistic) agrees(total int64) bool {
	if o.liked {
		return total >= o.total
	}
	return total <= o.total
}

// View is what to show.
type View struct {
	Liked   bool
	Count   int64 // includes the viewer's own wish
	Pending bool  // the wish is not confirmed yet
}

// View returns what to show now.
func (o Optimistic) View() View {
	count := o.total
	if o.counted {
		count--
	}
	if o.wish {
		count++
	}
	return View{Liked: o.wish, Count: max(0, count), Pending: o.pending}
}

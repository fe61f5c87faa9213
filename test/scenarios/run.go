package scenarios

import (
	"slices"
	"testing"

	"likewise/test/harness"
)

// scenario is one row of the suite.
type scenario struct {
	id      string
	title   string
	options func(t *testing.T) Options // nil asks for nothing special
	play    func(w *world)
}

// suite lists the scenarios in the order of their ids.
var suite = []scenario{
	{id: "B01", title: "repeats do not move the count", play: repeats},
	{id: "B02", title: "first likes of a post at one instant", play: firstLikes},
	{id: "B03", title: "parallel unlikes subtract one", play: parallelUnlikes},
	{id: "B04", title: "an unlike through another process", play: unlikeElsewhere},
	{id: "B05", title: "nobody disappears from the list", play: nobodyLost},
	{id: "B06", title: "one number in every view", play: oneNumber},
	{id: "B07", title: "an erased user is not counted", play: eraseUser},
	{id: "B08", title: "likes of a removed post are gone", play: removePost},
	{id: "B11", title: "no busy errors, own writes visible", play: busyWorkers},
	{id: "B15", title: "acknowledged likes survive a kill", play: survivesKill},
	{id: "B15-sync", title: "a sync ends before the answer", play: syncBeforeAnswer},
	{id: "B16", title: "a full disk refuses and recovers", options: onSmallDisk, play: fullDisk},
	{id: "B17", title: "a stop under load loses and doubles nothing", play: stopUnderLoad},
	{id: "B18", title: "an import leaves the numbers right", play: importLikes},
	{id: "B19", title: "a recount does not hold up likes", play: recountUnderLoad},
	{id: "B20", title: "a cached count shows nobody else's heart", play: ownHeart},
	{id: "B22", title: "all ids or a clear refusal", play: idLimit},
	{id: "B23", title: "equal times at a page edge", play: pageEdges},
	{id: "B24", title: "broken cursors are refused", play: brokenCursors},
	{id: "B25", title: "the row of a cursor is gone", play: cursorRowGone},
	{id: "B26", title: "a clock that was ahead", play: clockAhead},
	{id: "B27", title: "64-bit ids", play: bigIDs},
	{id: "B28", title: "ids with separators do not collide", play: separators},
	{id: "B29", title: "sloppy write paths are refused", play: sloppyPaths},
	{id: "B30", title: "display numbers", play: displayNumbers},
	{id: "B31", title: "open streams do not hold up a stop", options: quickStream, play: endStreams},
	{id: "B32", title: "heartbeats do not move the resume point", options: quickStream, play: trueResumePoint},
	{id: "B33", title: "what is told twice counts once", options: quickStream, play: cutOff},
	{id: "B34", title: "a stalled reader holds up nobody", options: impatient, play: stalledReader},
	{id: "B35", title: "429 says when to come back", options: withLimits, play: retryAfter},
	{id: "B36", title: "written addresses do not fool the limiter", options: withLimits, play: forwardedHeaders},
	{id: "B37", title: "a named user is not believed", play: namedUser},
	{id: "B38", title: "broken tokens are refused", options: withOrigin, play: brokenTokens},
}

// Run plays the suite against a deployment, a new one for each scenario.
func Run(t *testing.T, start Deployment) {
	for _, s := range suite {
		s.run(t, start, !harness.Heavy())
	}
}

// RunSmall plays the suite, or the scenarios with these ids, always with few rounds.
func RunSmall(t *testing.T, start Deployment, ids ...string) {
	for _, s := range suite {
		if len(ids) == 0 || slices.Contains(ids, s.id) {
			s.run(t, start, true)
		}
	}
}

func (s scenario) run(t *testing.T, start Deployment, small bool) {
	t.Run(s.id, func(t *testing.T) {
		t.Attr("scenario", s.title)
		if small { // the others also measure
			t.Parallel()
		}
		var o Options
		if s.options != nil {
			o = s.options(t)
		}
		w := newWorld(t, s.id, start(t, o))
		w.small = small
		s.play(w)
		w.finish()
	})
}

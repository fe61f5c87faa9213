package scenarios

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"likewise/test/harness"
)

// ownHeart is B20: what is cached is the number, never somebody's state.
func ownHeart(w *world) {
	u1, u2, p := w.user(1), w.user(2), w.post(1)
	w.like(u1, p)
	w.wantCount(p, 1)
	w.parallel(1000, 20, func(int) error { return w.wantView(u1, p, true) })
	w.parallel(600, 20, func(int) error {
		as := []string{u1, u2, ""}[rand.IntN(3)]
		return w.wantView(as, p, as == u1)
	})
	w.unlike(u1, p)
	w.wantMine(u1, p, false)
	w.like(u2, p)
	w.wantMine(u2, p, true)
	w.wantMine(u1, p, false)
	w.wantCount(p, 1)
}

// wantView wants count 1 and the caller's own state.
func (w *world) wantView(as string, p harness.Item, mine bool) error {
	counts, err := w.client.Counts(w.ctx, as, p)
	if err == nil && (counts[0].Count != 1 || counts[0].Mine() != mine) {
		err = fmt.Errorf("%q reads %d and %v, want 1 and %v", as, counts[0].Count, counts[0].Mine(), mine)
	}
	return err
}

// idLimit is B22: an entry for every id, or a refusal that names the limit.
func idLimit(w *world) {
	const limit = harness.MaxCounts
	u := w.user(1)
	for k := 1; k <= limit; k += 2 {
		w.like(u, w.post(k))
	}
	for _, n := range []int{1, 2, 20, 50, limit} {
		for k, got := range w.counts(u, w.posts(n)...) {
			if liked := k%2 == 0; got.Mine() != liked || got.Count != map[bool]int64{true: 1}[liked] {
				w.Fatalf("entry %d of %d is %+v", k, n, got)
			}
		}
	}
	for _, n := range []int{limit + 1, 1000} {
		items := make([]harness.Item, n)
		for k := range items {
			items[k] = harness.Post(fmt.Sprint(k)) // short, so that the query fits a URL
		}
		for _, r := range []harness.Request{
			{Method: http.MethodGet, Path: harness.CountsPath(items...)},
			{Method: http.MethodPost, Path: "/v1/likes/counts", Body: map[string]any{"items": items}},
		} {
			p := w.wantProblem(r, http.StatusBadRequest)
			if !strings.Contains(p.Detail, fmt.Sprint(limit)) {
				w.Fatalf("%s of %d ids: %q does not name the limit", r.Method, n, p.Detail)
			}
		}
	}
}

// wantProblem sends a request and wants a refusal as a problem document with one
// of these statuses.
func (w *world) wantProblem(r harness.Request, statuses ...int) *harness.Problem {
	w.Helper()
	res, err := w.client.Do(w.ctx, r)
	w.must(err)
	p := harness.ProblemOf(r, res)
	if !slices.Contains(statuses, res.Status) || p.Code == "" {
		w.Fatalf("%v (%s), want a problem document with status %v", p, res.Header.Get("Content-Type"), statuses)
	}
	return p
}

// pageEdges is B23: who liked at the same moment is neither skipped nor repeated.
func pageEdges(w *world) {
	p := w.post(1)
	w.together(500, func(k int) error { return w.set(w.user(k), p, true) })
	w.wantCount(p, 500)
	var walks [2][]harness.Liker
	for k := range walks {
		likers, pages, err := w.client.WalkLikers(w.ctx, p, 7)
		w.must(err)
		if len(likers) != 500 || pages != 72 {
			w.Fatalf("%d likers on %d pages, want 500 on 72", len(likers), pages)
		}
		walks[k] = likers
	}
	if !slices.Equal(walks[0], walks[1]) {
		w.Fatal("two walks give different orders")
	}
}

// brokenCursors is B24: a cursor is taken exactly as it was given, or refused.
func brokenCursors(w *world) {
	p1, p2 := w.post(1), w.post(2)
	for k := 1; k <= 30; k++ {
		w.like(w.user(k), p1)
		w.like(w.user(100+k), p2)
	}
	first, err := w.client.Likers(w.ctx, p1, "", 10)
	w.must(err)
	other, err := w.client.Likers(w.ctx, p2, "", 10)
	w.must(err)
	c := first.NextCursor
	last := map[bool]string{true: "B", false: "A"}[strings.HasSuffix(c, "A")]
	random := make([]byte, 4<<10)
	for k := range random {
		random[k] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[rand.IntN(64)]
	}
	bad := map[string]string{ // already escaped once for the query
		"extra character": url.QueryEscape(c + "!"),
		"last changed":    url.QueryEscape(c[:len(c)-1] + last),
		"upper case":      url.QueryEscape(strings.ToUpper(c)),
		"random text":     string(random),
		"escaped twice":   url.QueryEscape(escapeAll(c)),
		"of another post": url.QueryEscape(other.NextCursor),
	}
	for n := 1; n <= 5; n++ {
		bad[fmt.Sprintf("cut by %d", n)] = url.QueryEscape(c[:len(c)-n])
	}
	codes := map[string]bool{}
	for what, cursor := range bad {
		w.Logf("cursor: %s", what)
		r := harness.Request{Method: http.MethodGet, Path: p1.Path("likers") + "?limit=10&cursor=" + cursor}
		codes[w.wantProblem(r, http.StatusBadRequest).Code] = true
	}
	if len(codes) != 1 {
		w.Fatalf("broken cursors have the codes %v, want one", codes)
	}
	second, err := w.client.Likers(w.ctx, p1, c, 10)
	w.must(err)
	for k, l := range second.Likers {
		if want := w.user(20 - k); l.User != want {
			w.Fatalf("liker %d is %s, want %s", 11+k, l.User, want)
		}
	}
}

// escapeAll escapes every byte, also those that need not be.
func escapeAll(s string) string {
	var b strings.Builder
	for k := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[k])
	}
	return b.String()
}

// cursorRowGone is B25: a cursor carries its whole position.
func cursorRowGone(w *world) {
	p := w.post(1)
	for k := 1; k <= 30; k++ {
		w.like(w.user(k), p)
	}
	var got []string
	cursor := ""
	for page := 1; page == 1 || cursor != ""; page++ {
		next, err := w.client.Likers(w.ctx, p, cursor, 10)
		w.must(err)
		for _, l := range next.Likers {
			got = append(got, l.User)
		}
		cursor = next.NextCursor
		if page == 1 {
			w.unlike(got[9], p)
		}
	}
	for k := range 30 {
		if len(got) != 30 || got[k] != w.user(30-k) {
			w.Fatalf("the walk gives %q", got)
		}
	}
	if n := len(w.likers(p, 10)); n != 29 {
		w.Fatalf("a new walk finds %d likers, want 29", n)
	}
	w.wantCount(p, 29)
}

// clockAhead is B26: order of acceptance survives a clock that was wrong.
func clockAhead(w *world) {
	if w.target.Clock == nil {
		w.Skip("skipped: the clock of this deployment cannot be set")
	}
	p1, p2 := w.post(1), w.post(2)
	w.target.Clock(w.T, time.Hour)
	w.client.Close()
	for k := 1; k <= 20; k++ {
		w.like(w.user(k), p1)
	}
	if first, err := w.client.Likers(w.ctx, p1, "", 1); err != nil || time.Until(first.Likers[0].LikedAt) < 50*time.Minute {
		w.Fatalf("the clock is not ahead: %+v, %v", first, err)
	}
	w.target.Clock(w.T, 0)
	w.client.Close()
	for k := 21; k <= 40; k++ {
		w.like(w.user(k), p1)
	}
	w.like(w.user(1), p2)
	got := w.likers(p1, 7)
	for k := range 40 {
		if len(got) != 40 || got[k] != w.user(40-k) {
			w.Fatalf("the order is %q", got)
		}
	}
	w.wantCount(p1, 40)
	w.wantCount(p2, 1)
}

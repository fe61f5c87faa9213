package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"likewise/test/harness"
)

// bigIDs is B27: ids are text, byte for byte, also for a parser with doubles.
func bigIDs(w *world) {
	const user = "9223372036854775807"
	liked := harness.Post("9007199254740993")
	w.unlike(user, liked) // the names are fixed, so an earlier run may have left it
	w.like(user, liked)
	w.wantCount(liked, 1)
	items := []harness.Item{liked, harness.Post("9007199254740992"), harness.Post("18446744073709551615")}
	for k, got := range w.counts("", items...) {
		if want := map[int]int64{0: 1}[k]; got.Count != want {
			w.Fatalf("count of %v is %d, want %d", got.Item, got.Count, want)
		}
	}
	for _, r := range []harness.Request{
		{Method: http.MethodGet, Path: harness.CountsPath(items...)},
		{Method: http.MethodGet, Path: liked.Path("likers")},
		{Method: http.MethodGet, Path: "/v1/me/likes", User: user},
	} {
		res, err := w.client.Do(w.ctx, r)
		w.must(err)
		var doc any
		w.must(json.Unmarshal(res.Body, &doc)) // numbers become doubles here
		again, err := json.Marshal(doc)
		w.must(err)
		id := liked.ID
		if strings.HasSuffix(r.Path, "likers") {
			id = user
		}
		if !strings.Contains(string(again), `"`+id+`"`) {
			w.Fatalf("%s answers %s, read back as %s", r.Path, res.Body, again)
		}
	}
}

// separators is B28: two pairs of names are never one.
func separators(w *world) {
	for k, sep := range []string{":", "|", ",", "#", "{", "}", ";", "~", " ", "/", "%", "+", "&", "=", "?", "\"", "%2F", "é"} {
		a, c := fmt.Sprintf("a%d-%s", k, w.name), fmt.Sprintf("c%d-%s", k, w.name)
		joined, alone := harness.Post("b"+sep+c), harness.Post(c)
		user := a + sep + "b"
		if err := w.set(user, alone, true); harness.StatusOf(err) == http.StatusBadRequest {
			w.wantRefused(joined)
			continue
		} else {
			w.must(err)
		}
		w.wantPair(a, alone, 1, joined, 0, false)
		w.like(a, joined)
		w.wantPair(a, alone, 1, joined, 1, true)
		w.unlike(user, alone)
		w.wantPair(a, alone, 0, joined, 1, true)
	}
}

func (w *world) wantPair(as string, c harness.Item, n int64, bc harness.Item, m int64, mine bool) {
	w.Helper()
	w.wantCount(c, n)
	w.wantCount(bc, m)
	if counts := w.counts(as, c, bc); counts[0].Mine() || counts[1].Mine() != mine {
		w.Fatalf("%q reads %+v", as, counts)
	}
	w.wantMine(as, bc, mine)
}

// wantRefused wants the item to be refused on every endpoint alike.
func (w *world) wantRefused(item harness.Item) {
	w.Helper()
	_, put := w.client.Like(w.ctx, w.user(1), item)
	_, get := w.client.State(w.ctx, w.user(1), item)
	_, counts := w.client.Counts(w.ctx, "", item)
	_, likers := w.client.Likers(w.ctx, item, "", 10)
	for _, err := range []error{put, get, counts, likers} {
		if harness.StatusOf(err) != http.StatusBadRequest {
			w.Fatalf("%v is refused by some endpoints only: %v", item, errors.Join(put, get, counts, likers))
		}
	}
}

// sloppyPaths is B29: a write is done as it is written, or refused; it never
// becomes another request by a redirect.
func sloppyPaths(w *world) {
	u, p1, p2 := w.user(1), w.post(1), w.post(2)
	w.like(u, p1)
	for _, path := range []string{
		"/v1//posts/" + p1.ID + "/like",
		"/v1/posts//like",
		"/v1/posts/" + p1.ID + "/like/",
		"/v1/posts/./like",
		"/v1/posts/%2e/like",
		"/v1/posts/%2E%2E/like",
		"/v1/posts/" + p1.ID + "/../" + p2.ID + "/like",
		"/v1/posts/" + p1.ID + "/./like",
		"//v1/posts/" + p1.ID + "/like",
		"/v1/Posts/" + p1.ID + "/like",
		"/v1/posts/" + p1.ID + "%00/like",
		"/v1/posts/%ff/like",
	} {
		for _, method := range []string{http.MethodPut, http.MethodDelete} {
			for _, as := range []string{u, w.user(2)} {
				w.wantProblem(harness.Request{Method: method, Path: path, User: as}, http.StatusBadRequest, http.StatusNotFound)
			}
		}
	}
	w.wantCount(p1, 1)
	w.wantCount(p2, 0)
	w.wantLikers(p1, u)
}

// displayNumbers is B30, as far as likes can be made here; the rest of its values
// are tested where the number is formatted. The exact integer stays beside it.
func displayNumbers(w *world) {
	p := w.post(1)
	want := []struct {
		count   int
		display string
	}{{0, "0"}, {1, "1"}, {999, "999"}, {1000, "1K"}, {1049, "1K"}, {1050, "1.1K"}, {1950, "2K"}}
	if !w.small {
		want = append(want, []struct {
			count   int
			display string
		}{{99_949, "99.9K"}, {99_950, "100K"}, {199_950, "200K"}}...)
	}
	have := 0
	for _, n := range want {
		w.fill(p, have, n.count-have)
		have = n.count
		w.wantCount(p, int64(n.count))
		if got := w.counts("", p)[0].Display; got != n.display {
			w.Fatalf("%d is shown as %q, want %q", n.count, got, n.display)
		}
	}
}

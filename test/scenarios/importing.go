package scenarios

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"likewise/test/harness"
)

// importLikes is B18: imported likes count, once, with their own times.
func importLikes(w *world) {
	const posts, users = 10, 95
	live := map[string]bool{} // the last five users of each post like it before
	for p := 1; p <= posts; p++ {
		for u := users - 4; u <= users; u++ {
			w.like(w.user(u), w.post(p))
			live[w.user(u)] = true
		}
	}
	var lines []string
	times := map[harness.Pair]time.Time{}
	for p := 1; p <= posts; p++ {
		for u := 1; u <= users; u++ {
			pair := harness.Pair{User: w.user(u), Item: w.post(p)}
			times[pair] = time.Unix(1_400_000_000+int64(rand.IntN(50_000_000)), 0).UTC()
			line, err := json.Marshal(harness.Command{Item: pair.Item, User: pair.User, LikedAt: times[pair].Format(time.RFC3339)})
			w.must(err)
			lines = append(lines, string(line))
			if u <= 5 { // an exact repeat
				lines = append(lines, string(line))
			}
			if !live[pair.User] {
				w.acks.Begin(pair.User, pair.Item, true)(true)
			}
		}
	}
	if len(lines) != 1000 {
		w.Fatalf("%d lines, want 1000", len(lines))
	}
	rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	file := filepath.Join(w.TempDir(), "likes.ndjson")
	w.must(os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))

	for range 2 {
		w.importFile(file)
		w.wantMine(w.user(1), w.post(1), true)
		for p := 1; p <= posts; p++ {
			w.wantCount(w.post(p), users)
			w.must(w.wantTimes(w.post(p), times, live))
		}
	}
}

func (w *world) importFile(file string) {
	w.Helper()
	token := w.target.Keys.Token("importer", harness.ScopeWriteAny+" "+harness.ScopeImport)
	out, errs, code := harness.CLI(w.ctx, w.T, "import", file, "--url", w.target.URLs[0], "--token", token)
	if code != 0 {
		w.Fatalf("import ended with %d\n%s%s", code, out, errs)
	}
}

// wantTimes wants live likes, which are newer, before the imported ones, and
// those with the times of the file; the walk itself checks the order.
func (w *world) wantTimes(item harness.Item, times map[harness.Pair]time.Time, live map[string]bool) error {
	likers, _, err := w.client.WalkLikers(w.ctx, item, 100)
	if err != nil {
		return err
	}
	for _, l := range likers {
		if want := times[harness.Pair{User: l.User, Item: item}]; !live[l.User] && !l.LikedAt.Equal(want) {
			return fmt.Errorf("%s liked %v at %v, imported with %v", l.User, item, l.LikedAt, want)
		}
		if live[l.User] && time.Since(l.LikedAt) > time.Hour {
			return fmt.Errorf("a live like of %s was given the imported time %v", l.User, l.LikedAt)
		}
	}
	return nil
}

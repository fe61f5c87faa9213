package httpapi

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"likewise/internal/counts"
	"likewise/internal/ledger"
	"likewise/internal/like"
)

var awkward = []string{
	"1", "posts", "", "é", "😀", `"\`, "<&>", "\u2028\u2029", "\uFFFD", "\x7f", "a b", "\t\n\x01", "\u0085",
	"70123456789", "a\xffb", "~", "/",
}

func TestPageEqualsEncodingJSON(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pick := func() string { return awkward[r.IntN(len(awkward))] }
	for range 500 {
		viewer := r.IntN(2) == 0
		var page []counts.Entry
		var liking []friends
		want := countsAnswer{Counts: []countEntry{}}
		withFriends := r.IntN(2) == 0
		for range r.IntN(5) {
			e := counts.Entry{
				Total: like.Total{Item: like.Item{Collection: pick(), ID: pick()}, Count: r.Int64N(1 << (1 + r.IntN(62)))},
				Liked: r.IntN(2) == 0,
			}
			if r.IntN(4) == 0 {
				e.Age = time.Duration(r.Int64N(int64(time.Minute)))
			}
			c := countEntry{Collection: e.Total.Item.Collection, ID: e.Total.Item.ID, Count: e.Total.Count, Display: like.Display(e.Total.Count)}
			if viewer {
				c.LikedByMe = &e.Liked
			}
			if e.Age > 0 {
				c.AgeMS = max(e.Age.Milliseconds(), 1)
			}
			if withFriends {
				f := friends{Count: r.IntN(1000), Sample: []like.User{}}
				for range r.IntN(4) {
					f.Sample = append(f.Sample, like.User(pick()))
				}
				liking = append(liking, f)
				c.Friends = &f
			}
			page, want.Counts = append(page, e), append(want.Counts, c)
		}
		same(t, appendPage(nil, page, viewer, liking), want)
	}
}

func TestOtherAnswersEqualEncodingJSON(t *testing.T) {
	type outcome struct {
		Liked bool  `json:"liked"`
		Count int64 `json:"count"`
	}
	acks := []ledger.Ack{{State: like.State{Liked: true, Since: 5}, Count: 124}, {}}
	same(t, appendResults(nil, acks), map[string]any{"results": []outcome{{true, 124}, {false, 0}}})
	same(t, appendOutcome(nil, true, 1<<62), outcome{true, 1 << 62})
	same(t, appendUsers(nil, []like.User{"a", "<b>"}), []like.User{"a", "<b>"})
	for _, since := range []like.Stamp{1, 1_000_000, 1_700_000_000_123_456, 1_700_000_000_100_000} {
		f := like.Fact{Item: like.Item{Collection: "posts", ID: `"1"`}, User: "é", Since: since}
		same(t, appendFact(nil, f), struct {
			Collection string    `json:"collection"`
			ID         string    `json:"id"`
			User       like.User `json:"user"`
			LikedAt    time.Time `json:"liked_at"`
		}{f.Item.Collection, f.Item.ID, f.User, since.Time()})
	}
}

func same(t *testing.T, got []byte, value any) {
	t.Helper()
	want, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/client"
)

func post(id string) client.Item { return client.Item{Collection: "posts", ID: id} }

func posts(n int) (items []client.Item) {
	for i := range n {
		items = append(items, post(fmt.Sprint(i)))
	}
	return items
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestLikeAndUnlike(t *testing.T) {
	s := start(t)
	outcome := must[client.Outcome](t)
	// Every name of an item has to survive the path.
	for _, id := range []string{"1", "a/b", "100%", "ü&?=+ #;,", "..."} {
		item := post(id)
		ada, bob := s.as("ada"), s.as("bob")
		for _, step := range []struct {
			got, want client.Outcome
		}{
			{outcome(ada.Like(t.Context(), item)), client.Outcome{Liked: true, Count: 1}},
			{outcome(ada.Like(t.Context(), item)), client.Outcome{Liked: true, Count: 1}},
			{outcome(bob.Get(t.Context(), item)), client.Outcome{Count: 1}},
			{outcome(bob.Like(t.Context(), item)), client.Outcome{Liked: true, Count: 2}},
			{outcome(ada.Unlike(t.Context(), item)), client.Outcome{Count: 1}},
			{outcome(s.as("").Get(t.Context(), item)), client.Outcome{Count: 1}},
		} {
			if step.got != step.want {
				t.Errorf("%s: %+v, want %+v", item, step.got, step.want)
			}
		}
	}
}

func TestCountsOfManyItems(t *testing.T) {
	s := start(t)
	for _, id := range []string{"0", "100", "249"} {
		must[client.Outcome](t)(s.as("ada").Like(t.Context(), post(id)))
	}
	items := append(posts(250), post("0"))
	got := must[[]client.Count](t)(s.as("ada").Counts(t.Context(), items...))
	for i, c := range got {
		liked := i == 0 || i == 100 || i == 249 || i == 250
		if c.Item != items[i] || c.LikedByMe != liked || (c.Count == 1) != liked || c.Friends != nil {
			t.Errorf("entry %d: %+v", i, c)
		}
	}
	if len(got) != len(items) {
		t.Errorf("%d entries for %d items", len(got), len(items))
	}
	if got := must[[]client.Count](t)(s.as("ada").Counts(t.Context())); len(got) != 0 {
		t.Errorf("no items: %+v", got)
	}
}

func TestFriends(t *testing.T) {
	s := start(t)
	for _, user := range []string{"ada", "bob", "cleo", "dan"} {
		must[client.Outcome](t)(s.as(user).Like(t.Context(), post("1")))
	}
	got := must[[]client.Count](t)(s.as("eve").CountsWithFriends(t.Context(), []string{"zoe", "dan", "ada", "bob", "cleo"}, post("1"), post("2")))
	want := []client.Count{
		{Item: post("1"), Count: 4, Display: "4", Friends: &client.Friends{Count: 4, Sample: []string{"dan", "ada", "bob"}}},
		{Item: post("2"), Display: "0", Friends: &client.Friends{Sample: []string{}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := must[[]client.Count](t)(s.as("eve").CountsWithFriends(t.Context(), nil, post("1"))); got[0].Friends == nil || got[0].Friends.Count != 0 {
		t.Errorf("without friends: %+v", got)
	}
	among := must[[]string](t)(s.as("ada").LikersAmong(t.Context(), post("1"), "zoe", "dan", "dan", "ada"))
	if d := cmp.Diff([]string{"dan", "ada"}, among); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if among := must[[]string](t)(s.as("ada").LikersAmong(t.Context(), post("1"))); len(among) != 0 {
		t.Errorf("nobody asked about: %v", among)
	}
}

func TestBatchAndLists(t *testing.T) {
	s := start(t)
	backend := s.as("backend")
	var commands []client.Command
	for i := range 1200 {
		commands = append(commands, client.Command{Op: client.OpLike, Item: post("1"), User: fmt.Sprintf("u%04d", i)})
	}
	old := time.Date(2020, 1, 2, 3, 4, 5, 678000, time.UTC)
	commands[0].LikedAt = old
	commands = append(commands, client.Command{Op: client.OpUnlike, Item: post("1"), User: "u0001"})
	got := must[[]client.Outcome](t)(backend.Batch(t.Context(), commands...))
	if want := (client.Outcome{Count: 1199}); len(got) != len(commands) || got[1200] != want {
		t.Fatalf("%d outcomes, the last %+v", len(got), got[len(got)-1])
	}
	var users []string
	var first client.Liker // in time
	for liker, err := range s.as("").Likers(t.Context(), post("1")) {
		if err != nil {
			t.Fatal(err)
		}
		users, first = append(users, liker.User), liker
	}
	if len(users) != 1199 || users[0] != "u1199" || first.User != "u0000" || !first.LikedAt.Equal(old) {
		t.Errorf("%d likers from %s to %+v", len(users), users[0], first)
	}
	for liker, err := range s.as("").Likers(t.Context(), post("1")) {
		if err != nil || liker.User != "u1199" {
			t.Errorf("%+v, %v", liker, err)
		}
		break
	}
	for mine, err := range s.as("u0000").Mine(t.Context()) {
		if err != nil || mine.Item != post("1") || !mine.LikedAt.Equal(old) {
			t.Errorf("%+v, %v", mine, err)
		}
	}
	_, err := s.as("ada").Batch(t.Context(), commands...)
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Code != "missing_scope" {
		t.Errorf("without the scope: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	s := start(t)
	for _, tt := range []struct {
		name   string
		do     func() error
		status int
		code   string
	}{
		{"no token", func() error { _, err := s.as("").Like(t.Context(), post("1")); return err }, 401, "missing_token"},
		{"bad token", func() error { _, err := s.as("nobody").Get(t.Context(), post("1")); return err }, 401, "invalid_token"},
		{"bad name", func() error {
			_, err := s.as("ada").Like(t.Context(), client.Item{Collection: "Posts", ID: "1"})
			return err
		}, 400, "invalid_request"},
		{"dots", func() error { _, err := s.as("ada").Like(t.Context(), post("..")); return err }, 400, "invalid_path"},
		{"no list", func() error {
			for _, err := range s.as("").Mine(t.Context()) {
				return err
			}
			return nil
		}, 401, "missing_token"},
		{"too many in a stream", func() error {
			for _, err := range s.as("").Stream(t.Context(), posts(51)) {
				return err
			}
			return nil
		}, 400, "too_many"},
		{"elsewhere", func() error {
			c := must[*client.Client](t)(client.New(s.URL+"/nothing/", client.Options{}))
			_, err := c.Get(t.Context(), post("1"))
			return err
		}, 404, "not_found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.do()
			e, ok := errors.AsType[*client.Error](err)
			if !ok || e.Status != tt.status || e.Code != tt.code || e.Title == "" || e.RequestID == "" || e.Temporary() {
				t.Errorf("%#v", err)
			} else if text := e.Error(); !strings.Contains(text, tt.code) || !strings.Contains(text, e.RequestID) {
				t.Errorf("%q says too little", text)
			}
		})
	}
}

func TestStreamEndsWithItsContext(t *testing.T) {
	s := start(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var last error
	for count, err := range s.as("").Stream(ctx, posts(1)) {
		if last = err; err == nil && count.Item == post("0") {
			cancel(enough)
		}
	}
	if !errors.Is(last, enough) {
		t.Errorf("ended with %v", last)
	}
}

// However often its connection is cut, a stream ends with the counts of the server.
func TestStreamThatIsCut(t *testing.T) {
	s := start(t)
	items := posts(5)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const rounds = 20
	shown, cuts := map[client.Item]int64{}, 0
	for count, err := range s.as("").Stream(ctx, items) {
		if err != nil {
			t.Fatal(err)
		}
		if before, known := shown[count.Item]; known && count.Count <= before {
			t.Errorf("%s went from %d to %d", count.Item, before, count.Count)
		}
		shown[count.Item] = count.Count
		sum := int64(0)
		for _, n := range shown {
			sum += n
		}
		if len(shown) < len(items) || sum < int64(cuts*len(items)) {
			continue
		}
		if cuts == rounds {
			break
		}
		cuts++
		if s.lines.cut() == 0 {
			t.Error("no stream was open")
		}
		for _, item := range items {
			must[client.Outcome](t)(s.as(fmt.Sprint("user", cuts)).Like(t.Context(), item))
		}
	}
	for _, item := range items {
		if shown[item] != rounds {
			t.Errorf("%s shows %d of %d likes", item, shown[item], rounds)
		}
	}
}

package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type likersAnswer struct {
	Likers []struct {
		User    string
		LikedAt string `json:"liked_at"`
	}
	NextCursor string `json:"next_cursor"`
}

// walk returns the users of every page of a liker list.
func (s *service) walk(path string, limit int) (users []string, pages int) {
	s.Helper()
	for cursor := ""; ; {
		var page likersAnswer
		target := fmt.Sprintf("/v1/%s/likers?limit=%d", path, limit)
		if cursor != "" {
			target += "&" + query("cursor", cursor)
		}
		s.get("", target).decodeInto(&page)
		for _, l := range page.Likers {
			users = append(users, l.User)
		}
		pages++
		if cursor = page.NextCursor; cursor == "" {
			return users, pages
		}
	}
}

func TestLikersAreNewestFirstToTheEnd(t *testing.T) {
	inBothModes(t, func(s *service) {
		var want []string
		for i := range 30 {
			user := fmt.Sprintf("u%02d", i)
			s.put(user, "posts/1")
			want = append(want, user)
		}
		slices.Reverse(want)
		for limit, pages := range map[int]int{7: 5, 10: 3, 29: 2, 30: 1, 100: 1} {
			got, n := s.walk("posts/1", limit)
			if d := cmp.Diff(want, got); d != "" || n != pages {
				t.Errorf("limit %d: %d pages, want %d\n%s", limit, n, pages, d)
			}
		}
		s.get("", "/v1/posts/2/likers").want(200, `{"likers":[]}`)
	})
}

func TestLikersDefaultsAndLimits(t *testing.T) {
	once(t, func(s *service) {
		for i := range 60 {
			s.put(fmt.Sprint("u", i), "posts/1")
		}
		var page likersAnswer
		s.get("", "/v1/posts/1/likers").decodeInto(&page)
		if len(page.Likers) != 50 || page.NextCursor == "" {
			t.Errorf("%d likers without a limit, want 50 and a cursor", len(page.Likers))
		}
		for query, code := range map[string]string{
			"limit=0": "invalid_query", "limit=-1": "invalid_query", "limit=101": "invalid_query", "limit=": "invalid_query",
			"limit=1e1": "invalid_query", "limit=010": "invalid_query", "limit=%2B1": "invalid_query", "limit=9999999999999999999": "invalid_query",
			"limit=1&limit=2": "invalid_query", "offset=1": "invalid_query", "user=u1": "invalid_query", "Limit=1": "invalid_query",
			"cursor=": "invalid_cursor", "cursor=x": "invalid_cursor", "cursor=" + strings.Repeat("x", 257): "invalid_cursor",
		} {
			s.get("", "/v1/posts/1/likers?"+query).problem(400, code)
			s.get(tokenOf("u1"), "/v1/me/likes?"+query).problem(400, code)
		}
		s.get("", "/v1/posts/1/likers?limit=100").want(200, "")
		s.get("", "/v1/posts/1/likers?limit=1").want(200, "")
	})
}

// TestBrokenCursors is scenario B24.
func TestBrokenCursors(t *testing.T) {
	once(t, func(s *service) {
		for i := range 30 {
			s.put(fmt.Sprint("u", i), "posts/1")
			s.put(fmt.Sprint("v", i), "posts/2")
			s.put("u1", fmt.Sprint("games/", i))
			s.put("u2", fmt.Sprint("games/", i))
		}
		next := func(token, target string) string {
			var page likersAnswer
			s.get(token, target+"?limit=10").decodeInto(&page)
			return page.NextCursor
		}
		one, other := next("", "/v1/posts/1/likers"), next("", "/v1/posts/2/likers")
		mine, others := next(tokenOf("u1"), "/v1/me/likes"), next(tokenOf("u2"), "/v1/me/likes")
		last := byte('A')
		if one[len(one)-1] == last {
			last = 'B'
		}
		bad := []string{
			one + "!", one[:len(one)-1] + string(last), one[1:], strings.ToUpper(one), one + "\n", one + "=", " " + one,
			strings.Repeat("Zm9v", 1<<8), other, mine, "%" + one,
		}
		for n := 1; n <= 5; n++ {
			bad = append(bad, one[:len(one)-n])
		}
		for _, cursor := range bad {
			if strings.Contains(cursor, "\n") { // a control character is refused before anything is read
				s.get("", "/v1/posts/1/likers?"+query("cursor", cursor)).problem(400, "invalid_query")
				continue
			}
			s.get("", "/v1/posts/1/likers?"+query("cursor", cursor)).problem(400, "invalid_cursor")
		}
		s.get("", "/v1/posts/1/likers?cursor="+strings.ReplaceAll(query("c", query("c", one+"~~")), "c=", "")).problem(400, "invalid_cursor")
		s.get(tokenOf("u1"), "/v1/me/likes?"+query("cursor", others)).problem(400, "invalid_cursor")
		s.get(tokenOf("u1"), "/v1/me/likes?"+query("cursor", one)).problem(400, "invalid_cursor")
		s.get(tokenOf("u1"), "/v1/me/likes?"+query("cursor", mine)).want(200, "")
		var page likersAnswer
		s.get("", "/v1/posts/1/likers?limit=10&"+query("cursor", one)).decodeInto(&page)
		if page.Likers[0].User != "u19" || page.Likers[9].User != "u10" {
			t.Errorf("the good cursor gives %+v", page.Likers)
		}
	})
}

func TestMyLikes(t *testing.T) {
	inBothModes(t, func(s *service) {
		type answerBody struct {
			Likes []struct {
				Collection, ID string
				LikedAt        string `json:"liked_at"`
			}
			NextCursor string `json:"next_cursor"`
		}
		start := time.Now()
		s.put("u1", "posts/1")
		time.Sleep(1500 * time.Millisecond)
		s.put("u1", "games/7")
		s.put("u2", "posts/9")
		var page answerBody
		s.get(tokenOf("u1"), "/v1/me/likes?limit=1").decodeInto(&page)
		if len(page.Likes) != 1 || page.Likes[0].Collection != "games" || page.Likes[0].ID != "7" {
			t.Errorf("%+v, want the newest", page)
		}
		if want := start.Add(1500 * time.Millisecond).UTC().Format(time.RFC3339Nano); page.Likes[0].LikedAt != want {
			t.Errorf("liked_at %s, want %s", page.Likes[0].LikedAt, want)
		}
		s.get(tokenOf("u1"), "/v1/me/likes?limit=1&"+query("cursor", page.NextCursor)).decodeInto(&page)
		s.get(tokenOf("u9"), "/v1/me/likes").want(200, `{"likes":[]}`)
		s.get("", "/v1/me/likes").problem(401, "missing_token")
		s.do(call{method: http.MethodGet, target: "/v1/me/likes", token: tokenOf("u1"), body: `{"user":"u2"}`}).problem(400, "invalid_body")
	})
}

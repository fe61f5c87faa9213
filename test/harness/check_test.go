package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// liar answers for one post that u1 and u2 like, with one view that is wrong.
type liar struct {
	lie string
}

func (l liar) likers() []string {
	users := []string{"u2", "u1"}
	switch l.lie {
	case "lost liker":
		return users[:1]
	case "stranger":
		return append(users, "u9")
	case "unacknowledged unlike":
		return append(users, "u3")
	case "liker twice":
		return append(users, "u1")
	}
	return users
}

// audit is what the audit answers.
func (l liar) audit() string {
	switch l.lie {
	case "audit without end":
		return `{"progress":{"items":1}}`
	case "audit that failed":
		return `{"progress":{"items":1}}` + "\n" + `{"error":{"code":"unavailable"}}` + "\n"
	case "audit that stopped":
		return `{"summary":{"items":1,"stopped":"too much drift"}}` + "\n"
	}
	return `{"progress":{"items":1}}` + "\n" + `{"summary":{"items":1,"drifted":0,"repaired":0}}` + "\n"
}

func (l liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, item, likers := l.user(r), Post("1"), l.likers()
	mine := slices.Contains(likers, user)
	var out any
	switch {
	case r.URL.Path == "/metrics":
		fmt.Fprintf(w, "# TYPE %[1]s counter\n%[1]s{kind=\"total\"} %[2]d\n%[1]s_other 7\n", DriftMetric, map[bool]int{true: 1}[l.lie == "drift"])
		return
	case strings.HasPrefix(r.URL.Path, "/admin/"):
		_, _ = io.WriteString(w, l.audit())
		return
	case r.URL.Path == "/v1/likes/counts":
		count := len(likers)
		if l.lie == "count" {
			count++
		}
		mine = mine != (l.lie == "own state" && user == "u1")
		out = map[string]any{"counts": []any{map[string]any{
			"collection": item.Collection, "id": item.ID, "count": count, "display": "2", "liked_by_me": mine,
		}}}
	case r.URL.Path == "/v1/me/likes":
		likes := []Liked{}
		if mine && l.lie != "own list" {
			likes = []Liked{{Item: item, LikedAt: time.Unix(1, 0)}}
		}
		out = map[string]any{"likes": likes}
	default:
		page := LikersPage{Likers: []Liker{}}
		for k, u := range likers {
			page.Likers = append(page.Likers, Liker{u, time.Unix(int64(9-k), 0)})
		}
		if l.lie == "order" {
			slices.Reverse(page.Likers)
		}
		out = page
	}
	_ = json.NewEncoder(w).Encode(out) // a lost answer fails the test that asked
}

func (liar) user(r *http.Request) string {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(token, claims); err != nil {
		return ""
	}
	user, _ := claims.GetSubject()
	return user
}

// TestCheckerSeesEveryLie shows that each comparison of the checker can fail.
func TestCheckerSeesEveryLie(t *testing.T) {
	for _, lie := range []string{
		"", "lost liker", "liker twice", "stranger", "unacknowledged unlike", "drift", "count", "own state", "own list", "order",
		"audit without end", "audit that failed", "audit that stopped",
	} {
		t.Run("lie="+lie, func(t *testing.T) {
			server := httptest.NewServer(liar{lie})
			defer server.Close()
			acks := NewAcks()
			acks.Begin("u1", Post("1"), true)(true)
			acks.Begin("u2", Post("1"), true) // without an answer
			acks.Begin("u3", Post("1"), true)(true)
			acks.Begin("u3", Post("1"), false)(true)
			client := NewClient([]string{server.URL}, []string{server.URL}, NewKeys(t))
			checker := Checker{Client: client, Acks: acks, Within: time.Millisecond}
			if err := checker.Check(t.Context()); (err != nil) != (lie != "") {
				t.Errorf("the checker says %v", err)
			}
		})
	}
}

// TestCheckerAsksEveryNode shows that one node that counts twice is found, although
// the other one is right.
func TestCheckerAsksEveryNode(t *testing.T) {
	for _, lies := range [][]string{{"", ""}, {"count", ""}, {"", "count"}} {
		acks := NewAcks()
		acks.Begin("u1", Post("1"), true)(true)
		acks.Begin("u2", Post("1"), true)(true)
		var urls []string
		for _, lie := range lies {
			server := httptest.NewServer(liar{lie})
			defer server.Close()
			urls = append(urls, server.URL)
		}
		checker := Checker{Client: NewClient(urls, urls, NewKeys(t)), Acks: acks, Within: time.Second}
		for range 2 { // whichever node is next
			if err := checker.Check(t.Context()); (err != nil) != slices.Contains(lies, "count") {
				t.Errorf("nodes that lie %q: the checker says %v", lies, err)
			}
		}
	}
}

func TestMetricsAreNeverZeroByAbsence(t *testing.T) {
	if _, err := sumOf("likewise_other_total 1\n", DriftMetric); err == nil {
		t.Error("a missing metric has a value")
	}
	sum, err := sumOf("# HELP a_total b 3\na_total{x=\"1 2\"} 1\na_total{x=\"2\"} 2.5\na_total_more 9\n", "a_total")
	if err != nil || sum != 3.5 {
		t.Errorf("sum %v, %v, want 3.5", sum, err)
	}
}

package httpapi

import (
	"net/http"
	"testing"

	"likewise/internal/auth"
	"likewise/internal/console"
	"likewise/internal/like"
)

func TestConsole(t *testing.T) {
	once(t, func(s *service) {
		s.put("ada", "posts/a%2Fb").want(http.StatusOK, "")
		ask := func(token, target string) answer {
			return s.do(call{method: http.MethodGet, target: target, token: token, admin: true})
		}
		operator := tokenOf("op", auth.ScopeAdmin)
		var stats console.Stats
		ask(operator, "/console/api/stats").decodeInto(&stats)
		if stats.Likes != -1 || stats.Hot == nil || stats.Audits == nil || stats.Ready == nil {
			t.Errorf("%+v", stats)
		}
		var item console.ItemFacts
		ask(operator, "/console/api/items/posts/a%2Fb").decodeInto(&item)
		if item.Total != 1 || len(item.Likers) != 1 || item.Likers[0].User != "ada" {
			t.Errorf("%+v", item)
		}
		var user console.UserFacts
		ask(operator, "/console/api/users/ada").decodeInto(&user)
		if len(user.Likes) != 1 || user.Likes[0].ID != "a/b" {
			t.Errorf("%+v", user)
		}
		ask(operator, "/console/api/users/nobody").want(http.StatusOK, `{"likes":[]}`)
		ask(operator, "/console/api/stats?all=true").problem(http.StatusBadRequest, "invalid_query")
		ask(operator, "/console/api/items/Posts/1").problem(http.StatusBadRequest, "invalid_request")
		s.faults.set(like.ErrUnavailable)
		ask(operator, "/console/api/items/posts/1").problem(http.StatusServiceUnavailable, "unavailable")
		s.faults.set(nil)
		for _, target := range []string{"/console/api/stats", "/console/api/items/posts/1", "/console/api/users/ada"} {
			ask("", target).problem(http.StatusUnauthorized, "missing_token")
			ask(tokenOf("ada"), target).problem(http.StatusForbidden, "missing_scope")
		}
	})
}

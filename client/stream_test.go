package client

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func events200(body string) answer {
	return answer{200, http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, body}
}

func frame(id, count, version string) string {
	return "event: counts\nid: " + id + "\ndata: {\"counts\":[{\"collection\":\"posts\",\"id\":\"1\",\"count\":" + count + ",\"display\":\"" + count + "\",\"version\":\"" + version + "\"}]}\n\n"
}

// follow runs a stream until the script says no, and returns the counts it showed.
func follow(t *testing.T, answers ...answer) (shown []int64, s *script) {
	t.Helper()
	s = &script{answers: append(answers, answer{status: 403})}
	for count, err := range newScripted(t, s, Options{}).Stream(t.Context(), []Item{{"posts", "1"}}) {
		if err == nil {
			shown = append(shown, count.Count)
		}
	}
	return shown, s
}

func TestStreamComesBackWhereItStood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shown, s := follow(t,
			events200("retry: 2000\n\n"+frame("e-1", "5", "1")+frame("e-2", "7", "3")+"event: counts\nid: e-3\ndata: {\"cou"),
			answer{}, busy(5),
			events200(frame("f-1", "6", "2")+frame("f-2", "8", "4")+frame("f-3", "8", "4")),
		)
		if d := cmp.Diff([]int64{5, 7, 8}, shown); d != "" {
			t.Errorf("shown: an older or repeated count (-want +got)\n%s", d)
		}
		var ids []string
		for _, r := range s.sent {
			ids = append(ids, r.Header.Get("Last-Event-ID"))
			if r.URL.RawQuery != "posts=1" || r.Header.Get("Accept") != "text/event-stream" {
				t.Errorf("asked for %s with %v", r.URL, r.Header)
			}
		}
		if d := cmp.Diff([]string{"", "e-2", "e-2", "e-2", "f-3"}, ids); d != "" {
			t.Errorf("Last-Event-ID (-want +got)\n%s", d)
		}
		for i, least := range []time.Duration{0, 2 * time.Second, 4 * time.Second, 8 * time.Second, 2 * time.Second} {
			wait := s.at[i]
			if i > 0 {
				wait -= s.at[i-1]
			}
			if wait < least || wait > least+least/4 {
				t.Errorf("connection %d after %v, want about %v", i+1, wait, least)
			}
		}
	})
}

func TestSilentStreamIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shown, s := follow(t, answer{status: -1}, events200(frame("e-1", "5", "1")))
		if len(shown) != 1 || s.at[1] < silence || s.at[1] > silence+10*time.Second {
			t.Errorf("shown %v, asked at %v", shown, s.at)
		}
	})
}

func TestStreamRefuses(t *testing.T) {
	for name, a := range map[string]answer{
		"another type": {200, http.Header{"Content-Type": {"text/html"}}, "<html>"},
		"bad frame":    events200("event: counts\ndata: [\n\n"),
	} {
		s := &script{answers: []answer{a}}
		var last error
		for _, err := range newScripted(t, s, Options{}).Stream(t.Context(), []Item{{"posts", "1"}}) {
			last = err
		}
		if last == nil || len(s.sent) != 1 {
			t.Errorf("%s: %v after %d connections", name, last, len(s.sent))
		}
	}
	for _, err := range newScripted(t, &script{}, Options{}).Stream(t.Context(), []Item{{"posts", "a,b"}}) {
		if err == nil || !strings.Contains(err.Error(), "comma") {
			t.Errorf("a comma: %v", err)
		}
	}
}

func TestOtherEventsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shown, _ := follow(t, events200("event: news\ndata: hello\n\ndata: plain\n\n"+frame("e-1", "5", "1")))
		if len(shown) != 1 {
			t.Errorf("%v", shown)
		}
	})
}

package harness

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func entry(count, version string) string {
	return `{"collection":"posts","id":"1","count":` + count + `,"display":"x","version":"` + version + `"}`
}

func event(id string, entries ...string) string {
	return "event: counts\nid: " + id + "\ndata: {\"counts\":[" + strings.Join(entries, ",") + "]}\n\n"
}

// TestFrames reads what a stream may have, and ends where it may not go on.
func TestFrames(t *testing.T) {
	one := Frame{
		Event: "counts", ID: "a", Retry: -1, Data: `{"counts":[` + entry("3", "7") + `]}`,
		Counts: []LiveCount{{Item: Post("1"), Count: 3, Display: "x", Version: 7}},
	}
	for name, c := range map[string]struct {
		text string
		want []Frame
		end  error
	}{
		"empty":           {"", nil, io.EOF},
		"all kinds":       {"retry: 20\n\n" + event("a", entry("3", "7")) + ":\n\n", []Frame{{Retry: 20 * time.Millisecond}, one, {Retry: -1}}, io.EOF},
		"id of a comment": {": x\nid: b\n\n", []Frame{{ID: "b", Retry: -1}}, io.EOF},
		"half a line":     {"retr", nil, io.ErrUnexpectedEOF},
		"half a frame":    {"retry: 20\n", nil, io.ErrUnexpectedEOF},
		"nothing":         {"\n", nil, errFrame},
		"carriage return": {"retry: 20\r\n\r\n", nil, errFrame},
		"unknown field":   {"what: 1\n\n", nil, errFrame},
		"field twice":     {"id: 1\nid: 2\n\n", nil, errFrame},
		"no id":           {"event: counts\ndata: {\"counts\":[]}\n\n", nil, errFrame},
		"another event":   {"event: x\nid: a\ndata: {\"counts\":[]}\n\n", nil, errFrame},
		"unknown member":  {"event: counts\nid: a\ndata: {\"counts\":[],\"x\":1}\n\n", nil, errFrame},
		"below zero":      {event("a", entry("-1", "7")), nil, errFrame},
		"bad version":     {event("a", entry("1", "x")), nil, errFrame},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Stream{body: bufio.NewReader(strings.NewReader(c.text))}
			var got []Frame
			f, err := s.Next()
			for ; err == nil; f, err = s.Next() {
				got = append(got, f)
			}
			if !errors.Is(err, c.end) || !cmp.Equal(got, c.want) {
				t.Errorf("ends with %v, want %v; frames: %s", err, c.end, cmp.Diff(c.want, got))
			}
		})
	}
}

// TestPage follows two streams and refuses a third, whose versions go back.
func TestPage(t *testing.T) {
	bodies := []string{
		"retry: 1\n\n" + event("a", entry("3", "7")) + ":\n\n: status\nid: b\n\n",
		event("c", entry("2", "6")) + event("d", entry("5", "9")) + "retry: 50\n\n",
		event("e", entry("5", "9")) + event("f", entry("4", "8")),
	}
	var ids []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ids = append(ids, r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, bodies[len(ids)-1])
	}))
	defer server.Close()
	p := NewClient([]string{server.URL}, nil, NewKeys(t)).NewPage("alice", Post("1"))
	for _, want := range []int64{3, 5} {
		if err := p.Follow(t.Context()); err != nil || p.Counts()[Post("1")].Count != want {
			t.Fatalf("shows %+v, %v, want %d", p.Counts(), err, want)
		}
	}
	if p.Farewell() != 50*time.Millisecond || p.Signs() != 2 || p.Most() != 5 {
		t.Errorf("farewell %v, %d signs, most %d", p.Farewell(), p.Signs(), p.Most())
	}
	if err := p.Follow(t.Context()); !errors.Is(err, errFrame) {
		t.Errorf("versions that go back: %v", err)
	}
	if want := []string{"", "b", "d"}; !cmp.Equal(ids, want) {
		t.Errorf("came back with %q, want %q", ids, want)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Follow(gone); err != nil {
		t.Errorf("cut off: %v", err)
	}
}

package client

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// read collects the events of a stream and the error that ended it.
func read(r io.Reader, id string) (all []event, end error) {
	for e, err := range events(r, id, func() {}) {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, errors.New("no element said that the stream ended")
}

func TestEvents(t *testing.T) {
	message := func(data, id string) event { return event{name: "message", data: data, id: id, retry: -1} }
	for _, tt := range []struct {
		name, text string
		want       []event
	}{
		{"nothing", "", nil},
		{"one", "event: counts\nid: 7\ndata: {}\n\n", []event{{"counts", "{}", "7", -1}}},
		{"without a space", "data:a\n\n", []event{message("a", "start")}},
		{"one space only is taken away", "data:  a\n\n", []event{message(" a", "start")}},
		{"lines of data", "data: a\ndata: b\ndata\n\n", []event{message("a\nb\n", "start")}},
		{"empty data", "data\n\n", []event{message("", "start")}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []event{message("a", "start"), message("b", "start")}},
		{"CR", "data: a\r\rdata: b\r\r", []event{message("a", "start"), message("b", "start")}},
		{"comments", ":\n\n: hello\ndata: a\n\n", []event{message("a", "start")}},
		{"unknown field", "colour: red\ndata: a\n\n", []event{message("a", "start")}},
		{"byte order mark", "\ufeffdata: a\n\n", []event{message("a", "start")}},
		{"id stays", "id: 1\ndata: a\n\ndata: b\n\n", []event{message("a", "1"), message("b", "1")}},
		{"id without data", "id: 1\n\ndata: b\n\n", []event{message("b", "1")}},
		{"id is forgotten", "id: 1\ndata: a\n\nid\ndata: b\n\n", []event{message("a", "1"), message("b", "")}},
		{"id with a zero", "id: 1\x00\ndata: a\n\n", []event{message("a", "start")}},
		{"retry", "retry: 1500\n\n", []event{{"message", "", "start", 1500 * time.Millisecond}}},
		{"retry that is no number", "retry: 1s\n\nretry: -5\n\nretry:\n\n", nil},
		{"name does not stay", "event: counts\n\ndata: a\n\n", []event{message("a", "start")}},
		{"cut in an event", "data: a\n\ndata: b\n", []event{message("a", "start")}},
		{"cut in a line", "data: a\n\ndata: b", []event{message("a", "start")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"at once":    strings.NewReader(tt.text),
				"in bytes":   iotest.OneByteReader(strings.NewReader(tt.text)),
				"last + EOF": iotest.DataErrReader(strings.NewReader(tt.text)),
			} {
				got, end := read(r, "start")
				if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(event{})); d != "" || !errors.Is(end, io.EOF) {
					t.Errorf("%s: ended with %v (-want +got)\n%s", name, end, d)
				}
			}
		})
	}
}

func TestEndlessLine(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), strings.NewReader(strings.Repeat("a", 2*maxLine)))
	if _, err := read(endless, ""); !errors.Is(err, errLine) {
		t.Errorf("ended with %v", err)
	}
}

func TestHugeRetry(t *testing.T) {
	got, _ := read(strings.NewReader("retry: 99999999999999999999999\n\n"), "")
	if len(got) != 1 || got[0].retry <= 0 {
		t.Errorf("%+v", got)
	}
}

// FuzzEvents checks that a stream means the same however it is cut into pieces and
// whichever line end it has, and that no event spans more than its own lines.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"event: counts\nid: e-1-2\ndata: {\"counts\":[]}\n\n", "retry: 5\n\n:\n\n", "data: a\r\n\r\ndata: b\r\r", "\ufeffid\ndata\n\n", "data: x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, end := read(strings.NewReader(text), "")
		if !errors.Is(end, io.EOF) {
			t.Fatalf("ended with %v", end)
		}
		lines := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
		for name, r := range map[string]io.Reader{
			"in bytes": iotest.OneByteReader(strings.NewReader(text)),
			"LF":       strings.NewReader(lines),
			"CR":       strings.NewReader(strings.ReplaceAll(lines, "\n", "\r")),
			"CRLF":     iotest.HalfReader(strings.NewReader(strings.ReplaceAll(lines, "\n", "\r\n"))),
		} {
			got, _ := read(r, "")
			if d := cmp.Diff(want, got, cmp.AllowUnexported(event{})); d != "" {
				t.Errorf("%s (-want +got)\n%s", name, d)
			}
		}
		for _, e := range want {
			if e.name == "" || strings.ContainsAny(e.name+e.id, "\r\n") || strings.Contains(e.data, "\r") {
				t.Errorf("%+v", e)
			}
		}
	})
}

package transfer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/like"
)

func TestParseLine(t *testing.T) {
	at := like.StampOf(time.Date(2026, 1, 31, 12, 0, 0, 250_000_000, time.UTC))
	plain := like.Command{Item: like.Item{Collection: "posts", ID: "42"}, User: "ann", Op: like.OpLike}
	timed, odd := plain, plain
	timed.At = at
	odd.Item.ID, odd.User = "a \"b\" \uFFFD", "Zoë 😀"
	for _, tc := range []struct {
		name, line string
		want       like.Command
		refused    string // part of the reason
	}{
		{"plain", `{"collection":"posts","id":"42","user":"ann"}`, plain, ""},
		{"with time", `{"collection":"posts","id":"42","user":"ann","liked_at":"2026-01-31T12:00:00.25Z"}`, timed, ""},
		{"time with offset", `{"liked_at":"2026-01-31T13:00:00.25+01:00","user":"ann","id":"42","collection":"posts"}`, timed, ""},
		{"white space", ` { "collection" : "posts" , "id":"42","user":"ann" } `, plain, ""},
		{"escapes", `{"collection":"posts","id":"a \"b\" ` + "\uFFFD" + `","user":"Zo\u00eb \ud83d\ude00"}`, odd, ""},
		{"empty object", `{}`, like.Command{}, "collection is empty"},
		{"no user", `{"collection":"posts","id":"42"}`, like.Command{}, "user is empty"},
		{"not JSON", `likes`, like.Command{}, "not a JSON object"},
		{"array", `["posts"]`, like.Command{}, "not a JSON object"},
		{"cut off", `{"collection":"posts","id":"42"`, like.Command{}, "does not end"},
		{"cut in a string", `{"collection":"pos`, like.Command{}, "not valid JSON"},
		{"trailing data", `{"collection":"posts","id":"42","user":"ann"} {}`, like.Command{}, "follows"},
		{"unknown field", `{"collection":"posts","id":"42","user":"ann","op":"unlike"}`, like.Command{}, `"op" is unknown`},
		{"other case", `{"Collection":"posts","id":"42","user":"ann"}`, like.Command{}, `"Collection" is unknown`},
		{"repeated field", `{"collection":"posts","id":"42","id":"43","user":"ann"}`, like.Command{}, `"id" is given twice`},
		{"number as id", `{"collection":"posts","id":42,"user":"ann"}`, like.Command{}, "id: a string is expected"},
		{"null", `{"collection":"posts","id":"42","user":null}`, like.Command{}, "user: a string is expected"},
		{"nested", `{"collection":{"a":"b"},"id":"42","user":"ann"}`, like.Command{}, "a string is expected"},
		{"half a surrogate pair", `{"collection":"posts","id":"\ud83d","user":"ann"}`, like.Command{}, "surrogate"},
		{"not UTF-8", "{\"collection\":\"posts\",\"id\":\"\xff\",\"user\":\"ann\"}", like.Command{}, "UTF-8"},
		{"bad collection", `{"collection":"Posts","id":"42","user":"ann"}`, like.Command{}, "collection must match"},
		{"long id", `{"collection":"posts","id":"` + strings.Repeat("x", 129) + `","user":"ann"}`, like.Command{}, "longer than 128"},
		{"bad time", `{"collection":"posts","id":"42","user":"ann","liked_at":"yesterday"}`, like.Command{}, "liked_at must be a time"},
		{"empty time", `{"collection":"posts","id":"42","user":"ann","liked_at":""}`, like.Command{}, "liked_at must be a time"},
		{"before 1970", `{"collection":"posts","id":"42","user":"ann","liked_at":"1969-12-31T23:59:59Z"}`, like.Command{}, "1970"},
		{"zero time", `{"collection":"posts","id":"42","user":"ann","liked_at":"1970-01-01T00:00:00Z"}`, like.Command{}, "1970"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseLine([]byte(tc.line))
			if tc.refused != "" {
				if !errors.Is(err, like.ErrInvalid) || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("error %v, want ErrInvalid with %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzImportLine checks that no line makes the parser panic, and that what it
// takes is valid and survives being written and read again.
func FuzzImportLine(f *testing.F) {
	for _, seed := range []string{
		`{"collection":"posts","id":"42","user":"ann","liked_at":"2026-01-31T12:00:00Z"}`,
		`{"collection":"games","id":"<&>","user":"\u00eb"}`,
		`{"collection":"posts","id":"\ud800","user":"ann"}`,
		`{"collection":"posts","id":"` + "\uFFFD" + `","user":"\ufffd"}`,
		`{}`, `[]`, `{"id":{}}`, `{"id":"1"`, "\xff", "{\"id\":\"\x00\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		cmd, err := ParseLine(line)
		if err != nil {
			if !errors.Is(err, like.ErrInvalid) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		if err := cmd.Validate(); err != nil {
			t.Fatalf("%s: accepted, but %v", line, err)
		}
		again, err := ParseLine(AppendLine(nil, like.Fact{Item: cmd.Item, User: cmd.User, Since: cmd.At}))
		if err != nil || again != cmd {
			t.Fatalf("%s: read again as %+v, %v; want %+v", line, again, err, cmd)
		}
	})
}

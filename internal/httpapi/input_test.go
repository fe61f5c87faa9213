package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
	"unsafe"
)

func TestInputIsStrict(t *testing.T) {
	read := func(text string) (string, error) {
		var value string
		err := decode(text, func(in *input) {
			in.object(func(key string) {
				switch key {
				case "a":
					value += in.str()
				case "b":
					in.array("things", 2, func() { value += in.str() })
				default:
					in.unknown(key)
				}
			})
		})
		return value, err
	}
	for text, want := range map[string]string{
		`{}`: "", " \t\r\n{ } \n": "", `{"a":"x"}`: "x", `{"b":[]}`: "", `{"b" : [ "x" , "y" ] , "a" : "z"}`: "xyz",
		`{"a":"\u00e9\n\"\\\/"}`: "é\n\"\\/", `{"a":"\ud83d\ude00"}`: "😀", `{"a":"\ufffd` + "\uFFFD" + `\\ufffd\uFFFD"}`: "\uFFFD\uFFFD\\ufffd\uFFFD",
		`{"\u0061":"x"}`: "x",
	} {
		if got, err := read(text); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		``, ` `, `null`, `[]`, `"a"`, `1`, `{`, `{"a"`, `{"a":`, `{"a":"`, `{"a":"x"`, `{"a":"x",}`, `{,}`, `{"a" "x"}`, `{"a":"x" "b":[]}`,
		`{"a":"x","a":"x"}`, `{"a":"x","\u0061":"x"}`, `{"A":"x"}`, `{"c":"x"}`, `{"":"x"}`, `{a:"x"}`, `{'a':'x'}`,
		`{"a":1}`, `{"a":null}`, `{"a":["x"]}`, `{"b":"x"}`, `{"b":[1]}`, `{"b":["x",]}`, `{"b":["x" "y"]}`, `{"b":["x"`, `{"b":["x","y","z"]}`,
		`{"a":"x"}{}`, `{"a":"x"} x`, `{"a":"x"}` + "\x00", "\ufeff{}", `{"a":"` + "\x01" + `"}`, `{"a":"` + "\n" + `"}`,
		`{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\ud800"}`, `{"a":"\udc00\ud800"}`, `{"a":"\ud800\u0041"}`, `{"a":"` + "\xff" + `"}`,
		`{"a":"` + "\xed\xa0\x80" + `"}`, `{"a":"\`, `{"a":"\"}`, `/**/{}`,
	} {
		if got, err := read(text); err == nil {
			t.Errorf("%s: accepted as %q", text, got)
		}
	}
}

func TestInputSharesTheText(t *testing.T) {
	text := `{"users":["u1"]}`
	users, err := (&api{site: &site{cfg: DefaultConfig()}}).amongBody(text)
	if err != nil {
		t.Fatal(err)
	}
	if unsafe.StringData(string(users[0])) != unsafe.StringData(text[11:]) {
		t.Error("a plain name was copied")
	}
}

// bodyOfCounts is what encoding/json makes of a counts body.
type bodyOfCounts struct {
	Items []struct {
		Collection string `json:"collection"`
		ID         string `json:"id"`
	} `json:"items"`
	Friends []string `json:"friends"`
}

// FuzzBody reads bodies of counts and batches: never a 5xx, and what is accepted
// encoding/json reads in the same way.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"items":[{"collection":"posts","id":"1"}],"friends":["u1","\ud83d\ude00"]}`, oneCommand, `{}`, ``, `{"items":[{"id":"\u0031","collection":"posts"}]}`,
		`{"commands":[{"op":"unlike","collection":"a","id":"b","user":"c"},{"op":"like","collection":"a","id":"b","user":"c","liked_at":"2020-01-02T03:04:05.678Z"}]}`,
		strings.Repeat("[", 200), `{"items":[{"collection":"posts","id":"\ufffd"}]}`, `{"users":["a"]}`,
	} {
		f.Add(seed)
	}
	h := newFuzzed(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, target := range []string{"/v1/likes/counts", "/v1/likes:batch", "/v1/posts/1/likers/among"} {
			h.send(t, "POST", target, text)
		}
		h.send(t, "PUT", "/v1/posts/1/like", text)
		items, users, err := h.api.countsBody(text)
		if err != nil {
			return
		}
		var same bodyOfCounts
		if err := json.Unmarshal([]byte(text), &same); err != nil {
			t.Fatalf("%q is no JSON: %v", text, err)
		}
		if len(items) != len(same.Items) || len(users) != len(same.Friends) {
			t.Fatalf("%q: %v %v", text, items, users)
		}
		for i, item := range items {
			if item.ID != same.Items[i].ID || item.Collection != same.Items[i].Collection {
				t.Errorf("%q: %v, encoding/json reads %v", text, item, same.Items[i])
			}
		}
		for i, u := range users {
			if string(u) != same.Friends[i] {
				t.Errorf("%q: %q, encoding/json reads %q", text, u, same.Friends[i])
			}
		}
	})
}

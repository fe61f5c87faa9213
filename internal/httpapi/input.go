package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// input reads the JSON that this API takes: objects, arrays and strings of a
// known shape. It is stricter than encoding/json — every key is known, exact and
// given once, strings are UTF-8 without lone surrogates, nothing follows the value
// — and strings without escapes share the memory of the text. Depth is bounded by
// the shape that is asked for. The first mistake is kept and stops all reading.
type input struct {
	text string
	at   int
	err  error
}

// decode reads text, which must be the one value that read asks for.
func decode(text string, read func(in *input)) error {
	in := &input{text: text}
	read(in)
	if in.peek(); in.err == nil && in.at < len(in.text) {
		in.fail("something follows the value")
	}
	return in.err
}

// end is peek's answer behind the last byte. A NUL byte is no part of the grammar,
// so it may look the same.
const end = 0

func (in *input) fail(format string, args ...any) {
	if in.err == nil {
		in.err = refuse(invalidBody, format+", at byte %d", append(args, in.at)...)
	}
}

// stop ends the reading with a refusal that names no place.
func (in *input) stop(err error) {
	if in.err == nil {
		in.err = err
	}
}

func (in *input) unknown(key string) { in.fail("there is no field %q here", short(key)) }

// peek skips white space and returns the next byte.
func (in *input) peek() byte {
	for in.at < len(in.text) {
		switch c := in.text[in.at]; c {
		case ' ', '\t', '\r', '\n':
			in.at++
		default:
			return c
		}
	}
	return end
}

// take skips one expected byte and reports whether it was there.
func (in *input) take(c byte) bool {
	if in.err != nil || in.peek() != c {
		return false
	}
	in.at++
	return true
}

// object calls field for each key, which must read the value.
func (in *input) object(field func(key string)) {
	if !in.take('{') {
		in.fail("an object is expected")
	}
	if in.err != nil || in.take('}') {
		return
	}
	var room [8]string
	seen := room[:0]
	for in.err == nil {
		key := in.str()
		if !in.take(':') {
			in.fail("a colon is expected")
			return
		}
		if slices.Contains(seen, key) {
			in.fail("the field %q is given twice", short(key))
			return
		}
		seen = append(seen, key)
		field(key)
		if in.take('}') {
			return
		}
		if !in.take(',') {
			in.fail("a comma or the end of the object is expected")
		}
	}
}

// array calls element for each element, which must read it. limit bounds their
// number. A refusal names what they are and which one is wrong.
func (in *input) array(what string, limit int, element func()) {
	if !in.take('[') {
		in.fail("an array of %s is expected", what)
	}
	if in.err != nil || in.take(']') {
		return
	}
	for n := 0; in.err == nil; n++ {
		if n == limit {
			in.stop(refuse(tooMany, "more than %d %s in one request", limit, what))
			return
		}
		element()
		if in.err != nil {
			p, detail := explain(in.err)
			in.err = refuse(p, "%s[%d]: %s", what, n, detail)
			return
		}
		if in.take(']') {
			return
		}
		if !in.take(',') {
			in.fail("a comma or the end of the array is expected")
		}
	}
}

// str reads one string.
func (in *input) str() string {
	if !in.take('"') {
		in.fail("a string is expected")
		return ""
	}
	start := in.at
	for escaped := false; in.at < len(in.text); in.at++ {
		switch c := in.text[in.at]; {
		case c == '"':
			raw := in.text[start:in.at]
			in.at++
			return in.unquote(raw, escaped)
		case c == '\\':
			escaped = true
			in.at++
		case c < ' ':
			in.fail("a control character in a string")
			return ""
		}
	}
	in.fail("a string does not end")
	return ""
}

func (in *input) unquote(raw string, escaped bool) string {
	if !utf8.ValidString(raw) {
		in.fail("a string is not valid UTF-8")
		return ""
	}
	if !escaped {
		return raw
	}
	var s string
	if json.Unmarshal([]byte(`"`+raw+`"`), &s) != nil {
		in.fail("a string has an escape that does not exist")
		return ""
	}
	// The library turns half a surrogate pair into U+FFFD: two spellings of one name.
	if strings.Count(s, "\uFFFD") != countReplacement(raw) {
		in.fail("a string has half a surrogate pair")
		return ""
	}
	return s
}

// countReplacement counts the places where a raw string really says U+FFFD.
func countReplacement(raw string) int {
	n := strings.Count(raw, "\uFFFD")
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] == 'u' && strings.EqualFold(raw[i+1:i+5], "fffd") {
			n++
		}
	}
	return n
}

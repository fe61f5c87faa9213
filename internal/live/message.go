package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"likewise/internal/like"
)

// message is what a WebSocket client may say.
type message struct {
	subscribe, unsubscribe []like.Item
}

// parseMessage reads {"subscribe":{"posts":["1"]},"unsubscribe":{"games":["7"]}}, of
// which at least one must be there and name an item. limit bounds the items of each. Its error is
// [like.ErrInvalid]. It is stricter than encoding/json: keys are known, exact and
// given once, text is UTF-8, and nothing follows.
func parseMessage(text []byte, limit int) (m message, err error) {
	if !utf8.Valid(text) {
		return m, wrong("it is not UTF-8")
	}
	p := &parser{Decoder: json.NewDecoder(bytes.NewReader(text)), limit: limit}
	p.object(func(key string) {
		switch key {
		case "subscribe":
			m.subscribe = p.items()
		case "unsubscribe":
			m.unsubscribe = p.items()
		default:
			p.fail("there is no field of that name")
		}
	})
	if p.err == nil {
		if _, err := p.Token(); err != io.EOF {
			p.fail("something follows it")
		}
	}
	if p.err == nil && len(m.subscribe)+len(m.unsubscribe) == 0 {
		p.fail("it names no item")
	}
	// The library turns half a surrogate pair into U+FFFD: two spellings of one name.
	if p.replaced && bytes.Contains(text, []byte(`\u`)) {
		p.fail("write U+FFFD without an escape")
	}
	return m, p.err
}

func wrong(what string) error { return fmt.Errorf("%w: message: %s", like.ErrInvalid, what) }

// parser reads tokens. The first mistake is kept and stops all reading.
type parser struct {
	*json.Decoder
	limit    int
	replaced bool // a text has U+FFFD
	err      error
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = wrong(what)
	}
}

func (p *parser) token() json.Token {
	if p.err != nil {
		return nil
	}
	t, err := p.Token()
	if err != nil {
		p.fail("it is not JSON")
	}
	return t
}

func (p *parser) expect(d json.Delim) {
	if p.token() != d {
		p.fail("expected is " + d.String())
	}
}

func (p *parser) text() string {
	s, ok := p.token().(string)
	if !ok {
		p.fail("expected is a string")
	}
	p.replaced = p.replaced || strings.ContainsRune(s, utf8.RuneError)
	return s
}

// object calls field for each key, which must read the value.
func (p *parser) object(field func(key string)) {
	p.expect('{')
	var seen []string
	for p.err == nil && p.More() {
		key := p.text()
		if slices.Contains(seen, key) {
			p.fail("a field is given twice")
		}
		seen = append(seen, key)
		if p.err == nil {
			field(key)
		}
	}
	p.expect('}')
}

// items reads {"collection":["id",…],…}.
func (p *parser) items() (items []like.Item) {
	p.object(func(collection string) {
		p.expect('[')
		for p.err == nil && p.More() {
			item := like.Item{Collection: collection, ID: p.text()}
			if err := item.Validate(); err != nil && p.err == nil {
				p.err = err
			}
			if len(items) == p.limit {
				p.fail(fmt.Sprintf("more than %d items", p.limit))
			}
			items = append(items, item)
		}
		p.expect(']')
	})
	return items
}

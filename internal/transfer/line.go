package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"likewise/internal/like"
)

// maxLineBytes bounds one line; the longest like, all escaped, takes about 2 KiB.
const maxLineBytes = 64 << 10

// ParseLine reads one like. The fields collection, id and user are required;
// without liked_at the like is stamped when it is accepted. Unknown, repeated and
// differently cased fields are refused, as is text behind the object. Errors are
// [like.ErrInvalid].
func ParseLine(line []byte) (like.Command, error) {
	fields, err := parseFields(line)
	if err != nil {
		return like.Command{}, fmt.Errorf("%w: %w", like.ErrInvalid, err)
	}
	cmd := like.Command{
		Item: like.Item{Collection: fields["collection"], ID: fields["id"]},
		User: like.User(fields["user"]),
		Op:   like.OpLike,
	}
	if text, given := fields["liked_at"]; given {
		var at time.Time
		if err := at.UnmarshalText([]byte(text)); err != nil {
			return cmd, fmt.Errorf("%w: liked_at must be a time such as 2026-01-31T12:00:00Z", like.ErrInvalid)
		}
		// The zero stamp means "now", so the first microsecond of 1970 cannot be said.
		if cmd.At = like.StampOf(at); cmd.At <= 0 {
			return cmd, fmt.Errorf("%w: liked_at must be after the beginning of 1970", like.ErrInvalid)
		}
	}
	return cmd, cmd.Validate()
}

// AppendLine appends the line of one fact, with its line break.
func AppendLine(dst []byte, f like.Fact) []byte {
	text, err := json.Marshal(lineOf(f.Item, f.User, f.Since))
	if err != nil {
		panic(err) // a struct of strings
	}
	return append(append(dst, text...), '\n')
}

type jsonLine struct {
	Collection string `json:"collection"`
	ID         string `json:"id"`
	User       string `json:"user"`
	LikedAt    string `json:"liked_at,omitempty"`
}

func lineOf(item like.Item, user like.User, at like.Stamp) jsonLine {
	l := jsonLine{Collection: item.Collection, ID: item.ID, User: string(user)}
	if at != 0 {
		l.LikedAt = at.Time().Format(time.RFC3339Nano)
	}
	return l
}

// parseFields reads an object of strings that has only the known fields.
func parseFields(line []byte) (map[string]string, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("the line is not valid UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("the line is not a JSON object")
	}
	fields := map[string]string{}
	replaced := 0
	for decoder.More() {
		name, err := nextString(decoder)
		if err != nil {
			return nil, err
		}
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("the field %.40q is given twice", name)
		}
		switch name {
		case "collection", "id", "user", "liked_at":
		default:
			return nil, fmt.Errorf("the field %.40q is unknown", name)
		}
		if fields[name], err = nextString(decoder); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		replaced += strings.Count(fields[name], "\uFFFD")
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("the object does not end")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	// The decoder turns half a surrogate pair into U+FFFD: two spellings of one name.
	if replaced != bytes.Count(line, []byte("\uFFFD")) {
		return nil, errors.New(`a \u escape is half a surrogate pair or U+FFFD`)
	}
	return fields, nil
}

func nextString(decoder *json.Decoder) (string, error) {
	token, err := decoder.Token()
	if err != nil {
		return "", errors.New("the object is not valid JSON")
	}
	text, ok := token.(string)
	if !ok {
		return "", errors.New("a string is expected")
	}
	return text, nil
}

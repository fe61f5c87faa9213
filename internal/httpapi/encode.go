package httpapi

import (
	"encoding/json"
	"strconv"
	"time"

	"likewise/internal/counts"
	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Answers are appended by hand because they are most of what a page costs. A test
// compares each with encoding/json.

// appendPage appends the answer to a counts request. viewer says whether there is
// somebody whose state the entries show; liking is nil or has one element each.
func appendPage(b []byte, page []counts.Entry, viewer bool, liking []friends) []byte {
	b = append(b, `{"counts":[`...)
	for i, e := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendItem(append(b, '{'), e.Total.Item)
		b = append(b, `,"count":`...)
		b = strconv.AppendInt(b, e.Total.Count, 10)
		b = append(b, `,"display":"`...)
		b = append(b, like.Display(e.Total.Count)...)
		b = append(b, '"')
		if viewer {
			b = append(b, `,"liked_by_me":`...)
			b = strconv.AppendBool(b, e.Liked)
		}
		b = appendAge(b, e.Age)
		if liking != nil {
			b = appendFriends(b, liking[i])
		}
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

// appendAge marks a count that could not be read afresh.
func appendAge(b []byte, age time.Duration) []byte {
	if age == 0 {
		return b
	}
	b = append(b, `,"age_ms":`...)
	return strconv.AppendInt(b, max(age.Milliseconds(), 1), 10)
}

func appendFriends(b []byte, f friends) []byte {
	b = append(b, `,"friends":{"count":`...)
	b = strconv.AppendInt(b, int64(f.Count), 10)
	b = append(b, `,"sample":`...)
	return append(appendUsers(b, f.Sample), '}')
}

func appendUsers(b []byte, users []like.User) []byte {
	b = append(b, '[')
	for i, user := range users {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, string(user))
	}
	return append(b, ']')
}

// appendResults appends the answer to a batch.
func appendResults(b []byte, acks []ledger.Ack) []byte {
	b = append(b, `{"results":[`...)
	for i, ack := range acks {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendOutcome(b, ack.State.Liked, ack.Count)
	}
	return append(b, "]}"...)
}

// appendFact appends one line of an export, without its end.
func appendFact(b []byte, f like.Fact) []byte {
	b = appendItem(append(b, '{'), f.Item)
	b = append(b, `,"user":`...)
	b = appendString(b, string(f.User))
	b = append(b, `,"liked_at":"`...)
	b = appendTime(b, f.Since)
	return append(b, `"}`...)
}

func appendItem(b []byte, item like.Item) []byte {
	b = append(b, `"collection":`...)
	b = appendString(b, item.Collection)
	b = append(b, `,"id":`...)
	return appendString(b, item.ID)
}

// appendTime appends a stamp as RFC 3339 in UTC, with as many digits as it needs.
func appendTime(b []byte, s like.Stamp) []byte { return s.Time().AppendFormat(b, time.RFC3339Nano) }

// appendString appends a JSON string as encoding/json writes it.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err) // a string always has a JSON form
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

package redis

import (
	"strconv"
	"strings"

	"likewise/internal/like"
)

// totalFormat is the number of the format of a total's key and value.
const totalFormat = "total:1"

const versionDigits = 20 // of the largest version

// totalKey names the total of an item: likewise:total:1:5:posts42. The length of
// the collection keeps items apart that are cut in different places.
func (c *Client) totalKey(item like.Item) string {
	return c.key(totalFormat, strconv.Itoa(len(item.Collection))+":"+item.Collection+item.ID)
}

// formatTotal writes the version in 20 digits, a point and the count.
func formatTotal(t like.Total) string {
	b := make([]byte, 0, 2*versionDigits)
	version := strconv.AppendUint(nil, t.Version, 10)
	for range versionDigits - len(version) {
		b = append(b, '0')
	}
	b = append(append(b, version...), '.')
	return string(strconv.AppendInt(b, t.Count, 10))
}

// parseTotal reads what formatTotal wrote, and nothing else.
func parseTotal(item like.Item, text string) (like.Total, bool) {
	version, count, ok := strings.Cut(text, ".")
	if !ok || len(version) != versionDigits || !digits(version) || !digits(count) || len(count) > 1 && count[0] == '0' {
		return like.Total{}, false
	}
	v, err1 := strconv.ParseUint(version, 10, 64)
	n, err2 := strconv.ParseInt(count, 10, 64)
	return like.Total{Item: item, Count: n, Version: v}, err1 == nil && err2 == nil && (v != 0 || n == 0)
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

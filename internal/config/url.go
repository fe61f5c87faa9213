package config

import (
	"log/slog"
	"net/url"
	"regexp"
	"strings"
)

// embedded is the word for the ledger in the data directory.
const embedded = "pebble"

// URL is an address that may hold a password. Formatted or logged in any way it is
// masked; string(u) is the whole of it.
type URL string

// URLs is a list of [URL], separated by commas. A comma separates only where a URL
// begins behind it, because one URL may name several hosts.
type URLs []URL

// String is u without what may be secret.
func (u URL) String() string { return maskSecret(string(u)) }

// GoString implements [fmt.GoStringer].
func (u URL) GoString() string { return u.String() }

// LogValue implements [slog.LogValuer].
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// String is u without what may be secret.
func (u URLs) String() string {
	texts := make([]string, len(u))
	for i, one := range u {
		texts[i] = one.String()
	}
	return strings.Join(texts, ",")
}

// GoString implements [fmt.GoStringer].
func (u URLs) GoString() string { return u.String() }

// LogValue implements [slog.LogValuer].
func (u URLs) LogValue() slog.Value { return slog.StringValue(u.String()) }

var (
	beginsURL = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	plainWord = regexp.MustCompile(`^[a-z]*$`)
)

func splitURLs(text string) URLs {
	var list URLs
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		if one := strings.TrimSpace(part); len(list) == 0 || beginsURL.MatchString(one) {
			list = append(list, URL(one))
		} else {
			list[len(list)-1] += URL("," + part)
		}
	}
	return list
}

// maskSecret is maskURL for settings that hold nothing but URLs: what is none, such
// as the keywords of another notation, may be a password as a whole.
func maskSecret(text string) string {
	if beginsURL.MatchString(text) || plainWord.MatchString(text) {
		return maskURL(text)
	}
	return "***"
}

// maskURL hides what may be secret in a text that looks like a URL: the password
// and the query, and everything where a password may hold signs that end it. Other
// texts are returned as they are.
func maskURL(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	rest, query, asked := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(path, "@=") || strings.Contains(query, "@") {
		return scheme + "://***"
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, _, secret := strings.Cut(authority[:at], ":")
		if secret {
			rest = user + ":***" + rest[at:]
		}
	}
	if asked {
		rest += "?***"
	}
	return scheme + "://" + rest
}

// parse reads a URL whose Host may be a list of hosts. It tells no reason, because
// that would show the text.
func (u URL) parse() (parsed *url.URL, ok bool) {
	if !beginsURL.MatchString(string(u)) {
		return nil, false
	}
	scheme, rest, _ := strings.Cut(string(u), "://")
	end := strings.IndexAny(rest+"/", "/?#")
	begin := strings.LastIndexByte(rest[:end], '@') + 1
	parsed, err := url.Parse(scheme + "://" + rest[:begin] + "host" + rest[end:]) // url.Parse knows no lists
	if err != nil {
		return nil, false
	}
	parsed.Host = rest[begin:end]
	return parsed, true
}

// ParseDatabases reads URLs of PostgreSQL databases, separated by commas. Errors begin
// with name, where the text was given.
func ParseDatabases(name, text string) (URLs, error) {
	list := splitURLs(text)
	return list, checkDatabases(name, list)
}

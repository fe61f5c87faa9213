package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// userHeaders are names under which proxies and clients like to announce a user.
// They are refused, so that nobody comes to rely on one.
var userHeaders = []string{"X-User-Id", "X-User", "X-Remote-User"}

// canonical refuses requests that have a second spelling, on every route alike
// and before anything is matched, so that the mux never cleans a path and never
// redirects.
func (s *site) canonical(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.checkForm(r); err != nil {
			w.(*exchange).fail(err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *site) checkForm(r *http.Request) error {
	if len(r.RequestURI) > s.cfg.MaxURLBytes {
		return refuse(uriTooLong, "the URL is longer than %d bytes; POST takes the same items in a body", s.cfg.MaxURLBytes)
	}
	for _, name := range userHeaders {
		if _, ok := r.Header[name]; ok {
			return refuse(userNotAccepted, "the header %s is not accepted", name)
		}
	}
	return checkPath(r.URL.EscapedPath())
}

// checkPath accepts a path as it came over the wire: segments that are neither
// empty nor dots and that decode to UTF-8 without control characters.
func checkPath(escaped string) error {
	rest, rooted := strings.CutPrefix(escaped, "/")
	if !rooted {
		return refuse(invalidPath, "the path does not begin with a slash")
	}
	if rest == "" {
		return nil
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return refuse(invalidPath, "the path has an empty or dot segment")
		}
		text, err := url.PathUnescape(segment)
		if err != nil || !isText(text) {
			return refuse(invalidPath, "a path segment is not valid UTF-8 or has a control character")
		}
	}
	return nil
}

func isText(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

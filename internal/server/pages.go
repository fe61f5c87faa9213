package server

import (
	"net/http"
	"strings"
)

// pages is a handler of a few paths, each named exactly.
type pages interface {
	http.Handler
	Paths() []string
}

// withPages serves pages where they are, and everything else as before. A path is
// never cleaned on the way, because the API tells its spellings apart itself.
func withPages(next http.Handler, all ...pages) http.Handler {
	at := map[string]http.Handler{}
	for _, p := range all {
		for _, path := range p.Paths() {
			at[path] = p
			// The page of a directory is found without the slash too.
			if dir, ok := strings.CutSuffix(path, "/"); ok && dir != "" {
				at[dir] = http.RedirectHandler(path, http.StatusPermanentRedirect)
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if page := at[r.URL.Path]; page != nil {
			page.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

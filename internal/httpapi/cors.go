package httpapi

import (
	"net/http"
	"slices"
)

const (
	corsMethods = "GET, HEAD, POST, PUT, DELETE"
	corsHeaders = "Authorization, Content-Type, X-Request-Id"
	corsExposed = "RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"
	corsMaxAge  = "600"
)

var varyRequest = []string{"Authorization, Origin"}

// cors answers browsers for the pages of configured origins. Others get no CORS
// header, so that the browser keeps the answer from them. Tokens are sent by the
// page itself; there are no cookies and no credentials to allow.
func (s *site) cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Vary"] = varyRequest
		origin := r.Header.Get("Origin")
		if origin == "" || !s.allows(origin) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", corsMethods)
			h.Set("Access-Control-Allow-Headers", corsHeaders)
			h.Set("Access-Control-Max-Age", corsMaxAge)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.Set("Access-Control-Expose-Headers", corsExposed)
		next.ServeHTTP(w, r)
	})
}

func (s *site) allows(origin string) bool {
	return slices.Contains(s.cfg.CORSOrigins, origin) || slices.Contains(s.cfg.CORSOrigins, "*")
}

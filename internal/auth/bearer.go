package auth

import (
	"net/http"
	"strings"
)

// BearerToken returns the token of a request's Authorization header (RFC 6750,
// 2.1), and whether the request has the header at all. A header that is not one
// bearer token — another scheme, no token, several headers — is present and fails
// with [ErrUnauthenticated]: whoever tries to sign in is never taken for nobody.
// Tokens in the query or body are not looked at.
func BearerToken(r *http.Request) (token string, present bool, err error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", false, nil
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" || strings.ContainsAny(token, " \t,") {
		return "", true, ErrUnauthenticated
	}
	return token, true, nil
}

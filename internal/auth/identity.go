package auth

import (
	"errors"
	"slices"

	"likewise/internal/like"
)

// The scopes that the service knows. A token without a scope may act for its own
// subject only.
const (
	// ScopeWriteAny lets a trusted backend send commands of any user.
	ScopeWriteAny = "likes:write:any"
	// ScopeImport lets those commands carry the original time of a like.
	ScopeImport = "likes:import"
	// ScopeAdmin opens the admin API: audit, erase, remove.
	ScopeAdmin = "likes:admin"
)

// Scopes lists every scope that the service knows.
func Scopes() []string { return []string{ScopeWriteAny, ScopeImport, ScopeAdmin} }

// ErrUnauthenticated is the one answer to every token that is not accepted: it
// says nothing about why, and Verify returns it unwrapped. The reason goes to the
// log at debug level.
var ErrUnauthenticated = errors.New("access token is missing, malformed, expired or not valid here")

// Identity is who sent a request, as a verified token says.
type Identity struct {
	User like.User
	// Scopes is shared with other requests of the same token: do not change it.
	Scopes []string
}

// Has reports whether the identity carries a scope.
func (i Identity) Has(scope string) bool { return slices.Contains(i.Scopes, scope) }

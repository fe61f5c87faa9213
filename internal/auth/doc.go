// Package auth turns bearer tokens into identities and keeps the keys for that.
//
// A token is a signed JWT (RFC 7519): HS256 with one local secret, or RS256,
// ES256 or EdDSA with a key of a JSON Web Key Set that comes from a file or a
// URL. The algorithm belongs to the key: a token's header only selects among
// keys, it never decides how one is used.
//
//	Authorization ─ BearerToken ─► Verify ─► cache ─ hit ─► Identity
//	                                  └─ miss ─► parser ─► secret or keyring ◄─ Run refreshes
//
// Trade-offs. A verified token is remembered until it expires, so a token cannot
// be called back one by one; replacing the key set forgets all that were verified
// with it. While the source of a key set is down, the last good set stays in use
// without a time limit, because a like must not fail visibly; before a first set
// is loaded every token of it is refused as unavailable.
//
// The package must never: name the reason of a refusal to the caller, fetch a
// location that a token names, let a request start more than one refresh a
// minute, or log a token or a secret.
package auth

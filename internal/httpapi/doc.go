// Package httpapi speaks HTTP: the public API under /v1 and, for the admin
// listener, health and operation. Both are described by OpenAPI documents in this
// directory, and every request and response of the tests is checked against them.
//
//	request ─ observe ─ recover ─ cors ─ canonical ─ mux ─ identify ─ limit ─ handler
//	            │          │        │        │                                  │
//	            id,      problem  allow-   400, never                  like · counts · ledger
//	            metrics           list     a redirect
//
// Whatever goes wrong is returned as an error and becomes a problem+json answer
// in one place, by one table. Details of a failure that is not the caller's go to
// the log and not to the caller.
//
// The package must never: take a user from anywhere but a verified token (a
// trusted backend's batch and an operator's command excepted), answer a request
// whose token is wrong as if it had none, redirect, read an unbounded body, or
// decode a name twice.
package httpapi

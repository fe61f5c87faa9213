// Package transfer is the client side of a running server, as the command line
// needs it: importing and exporting likes, and the operator's requests.
//
// Likes travel as JSON lines (https://jsonlines.org), one like each:
//
//	{"collection":"posts","id":"42","user":"alice","liked_at":"2026-01-31T12:00:00Z"}
//
// An import can be stopped, killed and started again at any point: each line is
// idempotent, and the progress file says, with a digest of everything before it,
// how far the acknowledgements reach. A line that is not a like is reported and
// kept out; it never stops the rest.
//
// The package must never: report a line as imported before the server
// acknowledged it, put an incomplete export under the name that was asked for, or
// take an export that was cut off for a whole one.
package transfer

// Package limit says who may do how much: token buckets per user or address, the
// address that a request really comes from, and a cap on open connections.
//
// A bucket is kept as one number, the time at which it would be full again (the
// generic cell rate algorithm, GCRA), so a full bucket and an absent one are the
// same thing and forgetting idle keys changes no answer. Time is read from the
// monotonic clock only: a step of the wall clock neither locks out nor lets through.
//
// Several nodes with local limiters allow up to the sum of their limits; a limiter
// over a store that they share (internal/redis) allows one limit.
//
// The package must never: take a key from a header that an unconfigured peer
// wrote, grow without bound, or start a goroutine.
package limit

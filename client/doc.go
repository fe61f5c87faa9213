// Package client speaks to a likewise server: likes and unlikes, counts, lists and
// live counts. It needs nothing but the standard library.
//
// Every command is idempotent, so that the client repeats what failed for a
// passing reason, as often and as soon as the server allows it. Of all requests at
// most a tenth are repeats once the reserve of ten is used up: a server in trouble
// is not buried under them.
//
// A request that was answered with a refusal fails with an [*Error]. Every other
// error is one of the network, or the cause of the caller's context.
//
// Items and users are opaque strings. Who acts is the subject of the token, and
// nothing else.
package client

// Package harness drives the likewise binary from outside, as a user and an
// operator would: it builds and runs the real program, stops and kills it by
// process id, speaks its HTTP API through a strict client, remembers what was
// acknowledged, and checks that all views of the service agree with that.
//
// It imports nothing of the product, on purpose: what it knows about the service
// is what the documents promise.
//
//   - [Node] is one running process; [Binary] is the program it runs.
//   - [Client] speaks the API of one or more nodes and counts answers.
//   - [Keys] signs tokens, for thousands of users without the command line.
//   - [Acks] is the client's own ledger of acknowledgements.
//   - [Checker] compares count, liker list, own state and own list with it.
//
// Full sizes of the tests that use it run when LIKEWISE_HEAVY=1 (see [Heavy]).
package harness

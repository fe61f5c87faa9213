// Package metamorphic checks that how likes are kept changes nothing that a caller can
// see: the same sequence of operations gives the same facts, counts and lists through
// every ledger, any number of nodes and databases, fast and slow batches and drains,
// with and without caches.
//
//	sequence ─┬─► memory, command by command ──► transcript ─┐
//	          ├─► pebble, in batches ──────────► transcript ─┼─ equal
//	          └─► 3 nodes, 3 databases, Redis ─► transcript ─┘
//
// A step is a few commands, which one variant sends one by one, another in one batch
// and a third all at once, or an erasure; then something is read. What a ledger may
// choose is left out of transcripts: a stamp is written as the step that it was given
// in, and facts of one step are a set. Steps of one variant go to its nodes in turn.
// A sequence that differs is made shorter before it is reported. (Chen, Cheung and
// Yiu 1998.)
//
// LIKEWISE_SEED repeats the sequences of an earlier run.
package metamorphic

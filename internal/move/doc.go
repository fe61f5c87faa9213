// Package move makes one ledger hold exactly the facts of another, times included,
// while the source goes on serving, and then proves it.
//
//	source ── Feed ────────────────► changed items ─┐
//	       ── Export ── copy ──────────────────────┐│
//	       ── Export ── compare all ─► suspects ─┐ ││
//	       ── Likers ── pass: item by item ◄─────┴─┼┘
//	                       │ likes and unlikes     ▼
//	                       └────────────────────► target
//
// Everything rests on one invariant: an item is equal in both ledgers since it was
// last compared, or it is in the set of changed items. The feed is followed before
// anything is read, and it names what changes after (rule F1 of the port); what it
// cannot name, because it broke off or the set is full, is owed a comparison of
// everything.
//
//  1. Copy. The source's facts go over in batches, as likes with their own times. A
//     like that is there already keeps its time, so that a copy can be repeated.
//  2. Compare all. Both sides' facts are hashed with a key that is drawn for this
//     run, and summed by the hash of their item; sums that are equal say, but for
//     one chance in 2^128, that the facts are. This is how anti-entropy repair
//     finds what replicas disagree about (DeCandia et al., Dynamo, SOSP 2007, 4.7).
//     Its memory does not grow with the ledgers. Items whose sums differ are
//     suspects.
//  3. Passes. The lists of each suspect and of each changed item are merged, and
//     the target is told the difference. Items that differed are compared again.
//     Passes repeat while the set of changed items shrinks.
//  4. Switch. The source stands still (rules S1 to S4). The last changed items are
//     passed until none differs, and everything is compared once more. Only then
//     is the caller told that the target can take over.
//
// A run that dies leaves the source moving again and the target with a part of the
// facts; the next one compares first and copies what is missing.
//
// The package must never: change the source, report equality that it has not seen,
// let the source stand still for longer than its own run, or hold more in memory
// than its bounds, however large the ledgers are.
package move

// Package pebble is the embedded ledger: facts, lists and totals in one
// CockroachDB Pebble store that belongs to one process.
//
//	Apply ─► queue ─► writer ──────────────► committer ──────────► answer, feed
//	          bound   gather, fold,          wait for the WAL,
//	                  one pebble.Batch,      then sync the marker
//	                  apply without waiting
//
// One writer goroutine owns uniqueness, totals and the clock. It gathers what
// queued up while earlier batches are being synced (group commit), folds it
// against the facts, and applies one atomic batch: facts, list entries, totals
// and the sequence number. Nothing can come between a fact and its total. The
// committer waits for the write-ahead log, then syncs the marker, then answers.
//
// # Keys
//
//	f user item               ─► since              the facts; the truth
//	l item ^since user        ─► (empty)            likers, newest first
//	t item                    ─► count, version     totals
//	m name                    ─► …                  sequence and last stamp
//
// Every part is self-delimiting (see keys.go), so no two different names share
// a key. What a user likes, newest first, is a scan of that user's facts: a
// third key per like would cost a fifth of the write rate (docs/adr/0003).
//
// # What it must never do
//
// Acknowledge before the log is synced; retry a failed sync; decide with the
// filter, which may only save a read; let a second goroutine write.
package pebble

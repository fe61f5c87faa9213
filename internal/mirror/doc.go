// Package mirror keeps a column of the application's own PostgreSQL table equal to
// the totals of a collection, so that the application can show, sort and filter by
// likes in its own queries.
//
//	ledger.Feeder ─► changed ids ─┐ every interval, one transaction:
//	                              ├─► lock · read totals · one UPDATE ─► app.posts.like_count
//	app.posts ─► sweep: differing ┘            ▲
//	                                     ledger.Reader
//
// What is written is always the whole total, read from the ledger while the column is
// locked against other mirrors. Of two nodes that mirror the same column, one
// reads after the other has written; since a later read of a total is never older
// (R3), neither can put an older number over a newer one, however slow it is.
// Writing twice changes nothing: rows that are right are not touched.
//
// The mirror keeps no state of its own. A row becomes right in one of two ways:
//
//   - the feed shows every total that changes from the moment it is live (F1), and
//     an id leaves the set of changed ids only when a total that was read after the
//     change is committed, or found there already;
//   - a sweep reads the whole column by id and writes what differs. It begins only
//     while a feed is live, so that a change behind its back is the feed's.
//
// After one sweep, then, every row is right that was there when the sweep passed,
// whatever was lost before: a crash between two flushes, a feed with a gap, more
// changed ids than are kept in memory, a table that was restored from a copy. So a
// sweep begins at the start, after each of these as far as the mirror notices, after
// each lost connection (behind which an older database may have come back), and once
// in a while for the rest. Changes go on being flushed meanwhile.
//
// Rows that another transaction holds are left for the next flush: the mirror never
// waits for a row, and so never has a part in a deadlock with the application.
//
// Rows that refuse their count, as a trigger, a constraint or a policy has them do,
// are found by halves, each a transaction of its own, and left out. The next sweep
// finds them wrong again, and so tries them again, as does their next change.
//
// The package must never insert a row, write a difference, wait for the database
// while it holds up the feed, let one row hold up the others, or stop the node
// because a table is missing, wrong or out of reach.
package mirror

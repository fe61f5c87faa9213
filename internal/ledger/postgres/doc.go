// Package postgres is the ledger for several nodes: facts, totals and what lies
// between them in a PostgreSQL database that all nodes share, or in several
// databases (shards) that share the items.
//
//	Apply ─► queue ─► writers: one transaction for each batch   likes  + outbox row
//	                                                              │
//	            every node, every DrainInterval: drain ◄──────────┘
//	            one statement: outbox rows ─► totals + journal row of drains
//	                                                              │
//	Feed ◄── broadcast ◄── every node polls the journal ◄─────────┘
//
// Facts and the outbox row change in one transaction, the outbox row and the totals
// in another, both inside the database. So at every commit point the number of an
// item's facts is its total plus what the outbox holds for it; a retry is a
// rollback; any node may stop anywhere.
//
// How each of the port's harder rules is kept:
//
//   - W3, W4: the primary key decides, at the commit.
//   - W6: one snapshot gives the facts, the totals, and which transactions' deltas
//     the totals lack, by the transaction ids of the rows (xmin). So the caller's
//     own state is taken out of the total and put back once. Likes that were removed
//     lately are remembered until their deltas are drained.
//   - W9, and a connection that dies at COMMIT: the transaction is asked for by its
//     id (pg_xact_status) before the batch is sent again. After a crash of the server
//     ids do not tell any more, and the batch fails with its outcome unknown. A COMMIT
//     that succeeds with a warning is one that was not answered: its wait for a
//     replica was cancelled.
//   - W11: stamps start above the largest one in the outbox and the journal.
//   - F1: the journal is polled by transaction id from the oldest one that was
//     still running at the last poll (pg_snapshot_xmin), never by a sequence or a
//     time, because the order of commits is neither.
//   - R1 on replicas: a read asks the primary for its position in the log and waits
//     until the replica has replayed it, else the primary answers. Primaries note the
//     timeline of their log in a row, since a replica of a former primary may be
//     further in a log of its own. A replica may show a commit that the primary does
//     not show yet, so of two reads during a command the first may see it and the
//     second not.
//
// The package must never: acknowledge before the COMMIT was answered or found, move a
// total anywhere but in a drain or a repair, or read a total from a replica (two
// drains may become visible there in another order).
package postgres

// Package counts is the read path: it answers a page of items from an in-process
// cache of totals, from a cache that nodes share, if there is one, and from the
// ledger where neither can.
//
//	Page ─► in process ─miss─► shared: one call ─miss─► ledger: one call
//	          ▲    ▲              │                        │
//	  feed ───┘    └──────────────┴───── newest wins ──────┴──► shared, behind
//
// What it keeps true:
//
//   - Only absolute, versioned totals are cached, without the viewer. An older
//     version never overwrites a newer one, whoever brings it: a load, a feed or
//     the acknowledgement of a command. Only a read of the ledger that began after
//     the newer one came here does: then the database has lost that one.
//   - An unknown item is cached as the zero it is; a failure never is.
//   - Whether the viewer likes an item always comes from the ledger.
//   - Many readers who miss one item cause one load, and an entry that is merely
//     getting old is served at once and read again behind the answer.
//   - Few loads are under way at one time, so that readers never bury a ledger
//     whose caches were lost. Shards of a ledger are read apart from each other, so
//     that one which is away fails only the pages that want something of it.
//   - While the ledger fails or is too busy, old values are served up to a bounded
//     age and say how old they are; beyond it, and for items never seen, the
//     failure is returned. There is no made-up number.
package counts

// Package redis is what nodes share through Redis, one server or a Redis Cluster of
// version 7 or later: a cache of totals, a bus that tells all nodes what changed,
// and rates per user.
//
//	counts ── Get, Put ──►┐            ┌── likewise:total:1:…   "version.count", for a while
//	ledger ── Publish ───►│   Client   ├── likewise:bus:1:{…}   16 sharded channels
//	limit  ── Allow ─────►│ (breakers) └── likewise:limit:1:…   when the bucket is full
//	live   ◄─ Feed ── Bus ┘
//
// Nothing in it is the truth, and losing any of it changes no answer for long:
//
//   - Totals are absolute and have a version; the newest wins, in whatever order and
//     however often they arrive. What does not parse is as good as absent.
//   - The bus merges the ledger's own feed, which is complete, with messages from
//     other nodes, which are faster and may be lost. What only the ledger tells, of a
//     node that died or could not write, every node writes to the cache.
//   - A total is kept for a fixed time from the moment the ledger confirmed it, so
//     one that a failover of Redis brought back, or that all nodes died before they
//     could replace, is gone after that time.
//   - Each call has a short deadline. After a few failures, or one answer of a server
//     that is no primary any more, calls are not made for a moment: counts come from
//     the ledger, and limits are those of this process, so N nodes allow up to N
//     times the limit.
//
// Keys and messages carry the number of their format, so that nodes of two versions
// of likewise do not read each other's. Whoever may write to Redis is trusted like
// the nodes.
//
// The package must never: count in Redis, sum what it reads there, or make a caller
// wait for longer than the deadline of a call.
package redis

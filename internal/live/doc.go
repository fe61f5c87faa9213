// Package live tells people who watch items what their counts become, over
// server-sent events and WebSocket.
//
// The hub follows the ledger's feed and keeps the newest total of every watched
// item. Once per interval it publishes what changed: the sequence grows by one,
// each changed item is encoded once and notes the sequence, and each audience —
// the clients that watch the same items — gets one frame.
//
//	feed ─► entry (newest total) ─► flush ─► audience ─► client, client, …
//	                                  │         └ one frame, written to each
//	                                  └ sequence + 1
//
// What a client still has to be told is one number, the sequence up to which it
// was told everything: it is owed those of its items that changed later. A new
// client stands at 0 and so gets all of them, its snapshot; a slow one falls
// behind, loses values in between and gets the newest when it can take more; one
// that comes back says where it stood. All are the same step.
//
// The id of an event is that number with the epoch of this hub and a hash of the
// set of items: "epoch-sequence-set". It is a true resume point: a client that
// returns with it for the same items gets exactly what changed since, and one that
// returns with anything else (another node, another set, a restart) a snapshot.
// Retry fields and heartbeats have no id and never move the point.
//
// What it keeps true:
//
//   - Only absolute, versioned totals are sent. Of one item a client never gets an
//     older version after a newer one from one hub; between nodes it compares. The
//     exception is a newer one that the ledger has lost, in a failover: what is read
//     later than it was told replaces it.
//   - Items are subscribed before their totals are read, so that nothing can change
//     unseen in between. After a gap in the feed, and now and then without one,
//     every item is read again.
//   - Nobody waits for a slow client. Its connection never blocks a writer, it
//     holds at most one unfinished frame, and when it has not taken that within
//     the write timeout it is dropped.
//   - No lock is held while anything is written or read, except a client's own.
//     A client's lock is taken before the hub's, never after it.
//
// On Linux a stream over HTTP/1.1 has no goroutine: its connection is taken over
// from net/http and an epoll of the hub notices when the peer leaves. HTTP/2, other
// systems and WebSockets have goroutines of their own.
package live

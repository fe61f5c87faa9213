// Package ledger is the port to the only part of likewise that must not lie: it
// accepts commands, keeps facts and totals, and says what changed.
//
// The contract is the numbered rules in the comments below. A test of the same
// number in package conformance checks each of them, and every ledger passes
// that one suite. What is deliberately not promised:
//
//   - A total may lag behind the acknowledgements: by nothing in an embedded
//     ledger, by about a second in one that drains or folds in the background.
//   - One process need not see all writes; several nodes may share one store.
//   - A user's own state never comes from a total, so it never lags (R1).
//   - A read may show a command whose acknowledgement is still under way.
//
// Slices that a caller passes in stay the caller's; returned slices belong to
// the caller. All methods are safe for concurrent use. Every error is, by
// errors.Is, one of the kinds of package like, [errors.ErrUnsupported], or the
// cause of the caller's context.
package ledger

import (
	"context"
	"iter"

	"likewise/internal/like"
)

// Bounds of one call. Callers with smaller limits of their own check those
// first; beyond these every ledger refuses with [like.ErrInvalid].
const (
	MaxBatch = 1000 // commands of one ApplyMany
	MaxItems = 1000 // items of one Liked or Totals, users of one LikersAmong
	MaxPage  = 1000 // facts of one Likers or LikedBy page
)

// Ledger is everything a node needs of its store. Only the composition root
// names a concrete one.
type Ledger interface {
	Writer
	Reader
	Feeder
	Keeper
	// Ready reports nil when the ledger can accept commands now, else why not.
	// It is cheap enough to be asked every second.
	Ready(ctx context.Context) error
	// Close refuses new calls, finishes accepted ones, and releases everything.
	//
	// C1. After Close every method returns like.ErrClosed; Close again returns nil.
	// C2. What was acknowledged before Close is there when the store is opened again.
	Close() error
}

// Writer accepts commands.
type Writer interface {
	// Apply accepts one command and returns when it is durable.
	//
	// W1. An acknowledged command survives Close, a crash and power loss.
	// W2. A repeat changes nothing and is acknowledged like the first.
	// W3. At most one fact exists per user and item, in every view, whoever races.
	// W4. A command that starts after another's acknowledgement is folded after it.
	// W5. Ack.State is the caller's state right after this command, whoever races;
	//     a repeated like keeps the first stamp.
	// W6. Ack.Count counts the caller's own state exactly once, however often the
	//     command is repeated and however far totals lag. It is never negative.
	//     Ack.Version, when not 0, is the version of the total with that Count.
	// W7. A like with Command.At keeps that time as its stamp; a like that is
	//     already there keeps its own. A time more than [MaxAhead] in the future
	//     is like.ErrInvalid.
	// W9. A done context returns promptly with its cause; the command is then
	//     applied entirely or not at all, now or a little later.
	// W10. An invalid command is like.ErrInvalid and changes nothing.
	// W11. Later accepted means a larger stamp, also when the wall clock steps
	//      back and across a reopen.
	Apply(ctx context.Context, cmd like.Command) (Ack, error)

	// ApplyMany accepts up to MaxBatch commands in order and returns one Ack each.
	//
	// W8. Acks are in request order, and commands of one pair fold in that order.
	//     One invalid command refuses the whole call, and nothing is applied. After
	//     any other error some commands may be applied; repeating the call is harmless.
	ApplyMany(ctx context.Context, cmds []like.Command) ([]Ack, error)
}

// Ack is the answer to a durable command.
type Ack struct {
	// State of the pair after the command.
	State like.State
	// Count of the item as its caller should see it: own state included.
	Count int64
	// Version of the total that Count is, or 0 when Count is only this caller's
	// view of a total that has not moved yet.
	Version uint64
}

// Reader answers from facts and totals. No method turns a failure into a zero.
//
// R8. A count or page size beyond the bounds above, or an invalid name, is
// like.ErrInvalid. A page size is at least 1.
// R9. Names that differ in one byte are different, in every key and list.
// R10. A done context returns promptly with its cause.
type Reader interface {
	// Liked returns the user's state of each item.
	//
	// R1. In request order, repeats allowed; it sees every acknowledged command of
	//     this user, through any node, at once.
	Liked(ctx context.Context, user like.User, items []like.Item) ([]like.State, error)

	// Totals returns the total of each item.
	//
	// R2. In request order, repeats allowed; unknown is Count 0, Version 0; never negative.
	// R3. After the last acknowledgement and a lag of about a second, the total is
	//     the number of facts. A version never belongs to two counts, and a later
	//     read of one item never returns a smaller version.
	Totals(ctx context.Context, items []like.Item) ([]like.Total, error)

	// Likers returns up to n facts of an item behind the position after; the zero
	// Fact is the start, the last fact of a page the position of the next.
	//
	// R4. Newest first by Since. Facts of one Since have a fixed order that the
	//     ledger chooses. A walk to the end finds everyone who likes the item
	//     throughout, nobody twice and nobody skipped; Page.More is false on the
	//     last page, and a page with More is never empty.
	// R5. The fact at the position need not exist any more.
	Likers(ctx context.Context, item like.Item, after like.Fact, n int) (Page, error)

	// LikedBy returns up to n facts of a user behind the position after.
	//
	// R6. As R4 and R5, over what one user likes; it sees every acknowledged
	//     command of this user at once.
	LikedBy(ctx context.Context, user like.User, after like.Fact, n int) (Page, error)

	// LikersAmong returns which of the users like an item.
	//
	// R7. Exact, in request order, each user once even when asked for twice.
	LikersAmong(ctx context.Context, item like.Item, users []like.User) ([]like.User, error)
}

// Page is one page of a list.
type Page struct {
	Facts []like.Fact
	More  bool // whether facts follow behind the last one
}

// Feeder tells which totals changed.
type Feeder interface {
	// Feed yields batches of changed totals until its context is done, the
	// ledger is closed, or the caller stops. It is used once, by one goroutine; a
	// batch belongs to the ledger again when the loop continues.
	//
	// F1. The first batch is empty and says that the feed is live: every change
	//     acknowledged after it, an audit's correction included, is yielded, at
	//     least once, no later than Totals shows it plus a short delay. Values
	//     between two batches may be skipped: only the newest total per item is
	//     owed.
	// F2. Only committed totals are yielded: what a feed showed, no crash takes back.
	// F3. A consumer that falls too far behind gets like.ErrOverloaded as the
	//     last element; it starts a new feed and re-reads what it holds.
	// F4. After the context is done its cause is the last element; after Close,
	//     like.ErrClosed. Leaving the loop releases everything.
	Feed(ctx context.Context) iter.Seq2[[]like.Total, error]
}

// Keeper is the operator's side: audit, erasure, and copies of the whole.
type Keeper interface {
	// Audit counts the facts of one item and compares them with its lists and its
	// total at one point of the history; with repair it corrects what differs.
	//
	// A1. It finds no drift in a sound ledger, also while commands are applied.
	// A2. Without repair it changes nothing. With repair it corrects exactly: the
	//     next audit finds nothing, and commands applied meanwhile are kept.
	//     Facts missing from the list may be left to AuditAll by a ledger that
	//     cannot find an item's facts without reading all facts, but they are
	//     never mistaken for a wrong total.
	Audit(ctx context.Context, item like.Item, repair bool) (Audit, error)

	// AuditAll audits every item, in an order that the ledger chooses.
	//
	// A3. Every item with a fact, a list entry or a total is yielded once.
	AuditAll(ctx context.Context, repair bool) iter.Seq2[Audit, error]

	// EraseUser unlikes everything that a user likes and returns how many facts
	// that removed.
	//
	// A4. Each removal goes through the fold of an ordinary unlike. Interrupted,
	//     it can be repeated; a second run returns 0.
	EraseUser(ctx context.Context, user like.User) (int64, error)

	// RemoveItem unlikes an item for everyone who likes it and returns how many
	// facts that removed.
	//
	// A5. As A4. The item can be liked again afterwards, and its total's version
	//     goes on growing.
	RemoveItem(ctx context.Context, item like.Item) (int64, error)

	// Export yields every fact.
	//
	// A6. A fact that stands throughout is yielded exactly once, in an order that
	//     the ledger chooses.
	Export(ctx context.Context) iter.Seq2[like.Fact, error]

	// Backup writes a copy that holds every command acknowledged before the call
	// into dir, a directory that does not exist yet, while serving goes on.
	//
	// A7. The copy opens as a ledger of the same kind; a directory that exists is
	//     like.ErrInvalid. A ledger whose store has its own backups returns
	//     errors.ErrUnsupported.
	Backup(ctx context.Context, dir string) error
}

// Freezer is a ledger that can stand still while its facts move to another one. A
// ledger need not be one.
type Freezer interface {
	// Freeze calls while with the ledger standing still, and returns its error. The
	// context that while is given is done, with the cause, when the standstill is
	// lost before its end; while must return then.
	//
	// S1. From before the call of while until its return no command is applied,
	//     through no node: Apply, ApplyMany, EraseUser, RemoveItem and repairs fail
	//     promptly with like.ErrUnavailable. Every read shows what was acknowledged.
	// S2. Reads, exports, and audits that repair nothing go on, and feeds yield
	//     what was acknowledged before. The ledger stays Ready.
	// S3. It moves on by itself when while returns or the process ends; Close and
	//     a done context end while.
	// S4. A second Freeze is like.ErrUnavailable meanwhile.
	Freeze(ctx context.Context, while func(ctx context.Context) error) error
}

// Audit is what an audit of one item found.
type Audit struct {
	Item     like.Item
	Facts    int64 // facts counted: the truth
	Total    int64 // the total at the same point
	Unlisted int64 // facts missing from the item's list
	Phantom  int64 // list entries without a fact
	Repaired bool  // whether a difference was corrected
}

// Drift reports whether the audit found any difference.
func (a Audit) Drift() bool { return a.Total != a.Facts || a.Unlisted != 0 || a.Phantom != 0 }

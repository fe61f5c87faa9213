package conformance

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

var feedMutants = []mutant{
	{"F1", "drops a batch of its feed", 0, func(b *broken) {
		b.feed = func(ctx context.Context) iter.Seq2[[]like.Total, error] {
			return func(yield func([]like.Total, error) bool) {
				n := 0
				for batch, err := range b.Ledger.Feed(ctx) {
					if n++; n%3 == 0 && err == nil {
						continue
					}
					if !yield(batch, err) {
						return
					}
				}
			}
		}
	}},
	{"F1", "says that its feed is live before it is", 0, func(b *broken) {
		applied := make(chan struct{}, 1)
		b.apply = func(ctx context.Context, cmd like.Command) (ledger.Ack, error) {
			ack, err := b.Ledger.Apply(ctx, cmd)
			select {
			case applied <- struct{}{}:
			default:
			}
			return ack, err
		}
		b.feed = func(ctx context.Context) iter.Seq2[[]like.Total, error] {
			return func(yield func([]like.Total, error) bool) {
				<-applied // before the feed, so that one that comes after it is waited for
				if !yield(nil, nil) {
					return
				}
				select {
				case <-applied:
				case <-ctx.Done():
				}
				first := true
				for batch, err := range b.Ledger.Feed(ctx) {
					if !first && !yield(batch, err) {
						return
					}
					first = false
				}
			}
		}
	}},
	{"F1", "does not feed what an audit corrected", 0, func(b *broken) {
		var corrected sync.Map // like.Total without its count
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			if a, _ := b.Ledger.Audit(ctx, item, false); repair && a.Drift() {
				totals, _ := b.Ledger.Totals(ctx, []like.Item{item})
				corrected.Store(like.Total{Item: item, Version: totals[0].Version + 1}, true)
			}
			return b.Ledger.Audit(ctx, item, repair)
		}
		b.feed = eachTotal(b, func(t *like.Total) {
			if _, ok := corrected.Load(like.Total{Item: t.Item, Version: t.Version}); ok {
				*t = like.Total{Item: t.Item}
			}
		})
	}},
	{"F2", "shows totals before they are committed", 0, func(b *broken) {
		b.feed = eachTotal(b, func(t *like.Total) { t.Count, t.Version = t.Count+1, t.Version+1 })
	}},
	{"F3", "forgets what an overloaded feed missed", 0, func(b *broken) {
		b.feed = func(ctx context.Context) iter.Seq2[[]like.Total, error] {
			return func(yield func([]like.Total, error) bool) {
				for {
					for batch, err := range b.Ledger.Feed(ctx) {
						if errors.Is(err, like.ErrOverloaded) {
							break
						}
						if !yield(batch, err) || err != nil {
							return
						}
					}
				}
			}
		}
	}},
	{"F4", "ends a feed without a word", 0, func(b *broken) {
		b.feed = func(ctx context.Context) iter.Seq2[[]like.Total, error] {
			return func(yield func([]like.Total, error) bool) {
				for batch, err := range b.Ledger.Feed(ctx) {
					if err != nil || !yield(batch, err) {
						return
					}
				}
			}
		}
	}},
	{"F4", "keeps a goroutine for a feed that was left", 0, func(b *broken) {
		b.feed = func(ctx context.Context) iter.Seq2[[]like.Total, error] {
			go func() { <-ctx.Done() }()
			return b.Ledger.Feed(ctx)
		}
	}},
}

// eachTotal is a feed of which every total is changed.
func eachTotal(b *broken, change func(*like.Total)) func(context.Context) iter.Seq2[[]like.Total, error] {
	return func(ctx context.Context) iter.Seq2[[]like.Total, error] {
		return func(yield func([]like.Total, error) bool) {
			for batch, err := range b.Ledger.Feed(ctx) {
				for k := range batch {
					change(&batch[k])
				}
				if !yield(batch, err) {
					return
				}
			}
		}
	}
}

var keepMutants = []mutant{
	{"A1", "takes a lagging total for drift", lagging, func(b *broken) {
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			a, err := b.Ledger.Audit(ctx, item, false)
			a.Total = b.count(item)
			if repair && a.Drift() {
				b.Skew(item, a.Facts-a.Total)
				a.Repaired = true
			}
			return a, err
		}
	}},
	{"A1", "counts facts and total at two moments", 0, func(b *broken) {
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			a, err := b.Ledger.Audit(ctx, item, repair)
			for facts, tries := a.Total, 0; a.Total == facts && tries < 1000; tries++ {
				runtime.Gosched() // somebody likes or unlikes meanwhile
				a.Total = b.count(item)
			}
			return a, err
		}
	}},
	{"A2", "repairs without being asked", 0, func(b *broken) {
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			a, err := b.Ledger.Audit(ctx, item, true)
			a.Repaired = a.Repaired && repair
			return a, err
		}
	}},
	{"A2", "repairs a total to what it was meant to be before", 0, func(b *broken) {
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			a, err := b.Ledger.Audit(ctx, item, repair)
			if a.Repaired {
				b.Skew(item, -1)
			}
			return a, err
		}
	}},
	{"A2", "does not see list entries without a fact", 0, func(b *broken) {
		b.audit = func(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
			a, err := b.Ledger.Audit(ctx, item, false)
			if a.Phantom > 0 {
				a.Phantom = 0
				return a, err
			}
			return b.Ledger.Audit(ctx, item, repair)
		}
	}},
	{"A3", "audits only what somebody likes", 0, auditing(func(a ledger.Audit) int { return int(min(a.Facts, 1)) })},
	{"A3", "audits an item twice", 0, auditing(func(a ledger.Audit) int { return 1 + int(a.Facts/4) })},
	{"A4", "erases without counting", 0, func(b *broken) {
		b.eraseUser = func(ctx context.Context, user like.User) (int64, error) {
			page, _ := b.Ledger.LikedBy(ctx, user, like.Fact{}, ledger.MaxPage)
			for _, f := range page.Facts {
				b.Skew(f.Item, 1)
			}
			return b.Ledger.EraseUser(ctx, user)
		}
	}},
	{"A5", "starts versions again for a removed item", 0, func(b *broken) {
		base := map[like.Item]uint64{}
		b.removeItem = func(ctx context.Context, item like.Item) (int64, error) {
			n, err := b.Ledger.RemoveItem(ctx, item)
			totals, _ := b.Ledger.Totals(ctx, []like.Item{item})
			base[item] = totals[0].Version
			return n, err
		}
		b.totals = func(ctx context.Context, items []like.Item) ([]like.Total, error) {
			totals, err := b.Ledger.Totals(ctx, items)
			for k := range totals {
				totals[k].Version -= base[totals[k].Item]
			}
			return totals, err
		}
	}},
	{"A6", "exports a fact twice", 0, func(b *broken) {
		b.export = func(ctx context.Context) iter.Seq2[like.Fact, error] {
			return func(yield func(like.Fact, error) bool) {
				for f, err := range b.Ledger.Export(ctx) {
					if !yield(f, err) || f.User == "u17" && !yield(f, err) {
						return
					}
				}
			}
		}
	}},
	{"A7", "claims a backup that it did not write", 0, func(b *broken) {
		b.backup = func(context.Context, string) error { return nil }
	}},
}

// auditing yields each audit as often as times says.
func auditing(times func(ledger.Audit) int) func(*broken) {
	return func(b *broken) {
		b.auditAll = func(ctx context.Context, repair bool) iter.Seq2[ledger.Audit, error] {
			return func(yield func(ledger.Audit, error) bool) {
				for a, err := range b.Ledger.AuditAll(ctx, repair) {
					for range times(a) {
						if !yield(a, err) {
							return
						}
					}
				}
			}
		}
	}
}

// Package reconcile audits the totals against the facts: in the background, and
// whenever an operator asks. It is a decorator of [ledger.Keeper], so that every
// audit, whoever started it, is counted, logged and bounded in the same way.
//
// Drift means a bug. It is corrected, because people look at the numbers, but it
// is never silent: each differing item is an error in the log and moves a counter
// that an alert watches. A run that corrects a great many items stops: then the audit itself, or the store, is the more likely culprit.
//
// The package must never compare a total with facts of another moment: what is
// compared is what the ledger audits at one point of its history.
package reconcile

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Config says when and how hard to audit.
type Config struct {
	// Every is the time between two audits of everything in the background; 0 does
	// without. The first starts after that time.
	Every time.Duration
	// MaxRepairs is how many items a run may correct; one more ends it.
	MaxRepairs int
	// Share is the part of the time, above 0 and at most 1, that an audit of
	// everything may work; it pauses for the rest.
	Share float64
}

// DefaultConfig returns a daily audit at half speed.
func DefaultConfig() Config {
	return Config{Every: 24 * time.Hour, MaxRepairs: 1000, Share: 0.5}
}

// Validate reports, as [like.ErrInvalid], why the settings cannot work.
func (c Config) Validate() error {
	switch {
	case c.Every < 0:
		return fmt.Errorf("%w: time between audits is negative", like.ErrInvalid)
	case c.MaxRepairs < 1:
		return fmt.Errorf("%w: an audit must be allowed at least one repair", like.ErrInvalid)
	case !(c.Share > 0 && c.Share <= 1):
		return fmt.Errorf("%w: share of an audit must be above 0 and at most 1", like.ErrInvalid)
	}
	return nil
}

// StoppedError is the last element of a run that corrected more items than it may.
// It is a [like.ErrCorrupt].
type StoppedError struct{ Repaired int }

// Error says what to do.
func (e *StoppedError) Error() string {
	return fmt.Sprintf("stopped after correcting %d items: so much drift needs a person to look; "+
		"a dry run lists the rest without changing it", e.Repaired)
}

// Unwrap returns the kind.
func (e *StoppedError) Unwrap() error { return like.ErrCorrupt }

// Reconciler is a keeper whose audits are watched. Safe for concurrent use.
type Reconciler struct {
	ledger.Keeper
	cfg     Config
	log     *slog.Logger
	metrics metrics

	mu   sync.Mutex
	runs []Run // guarded by mu
}

// Run is an audit of everything that came to its end.
type Run struct {
	Ended                    time.Time
	Took                     time.Duration
	Items, Drifted, Repaired int
}

// maxRuns is how many of the last runs are remembered.
const maxRuns = 20

// Runs returns the last audits of everything, at most 20, the oldest first.
func (r *Reconciler) Runs() []Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.runs)
}

// finished remembers a run.
func (r *Reconciler) finished(run Run) {
	r.metrics.completed(run)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = append(r.runs[max(0, len(r.runs)-maxRuns+1):], run)
}

var _ ledger.Keeper = (*Reconciler)(nil)

// New returns a reconciler over k and starts nothing. cfg must be valid; reg may be nil.
func New(k ledger.Keeper, cfg Config, reg prometheus.Registerer, log *slog.Logger) *Reconciler {
	return &Reconciler{
		Keeper:  k,
		cfg:     cfg,
		log:     log.With(slog.String("component", "reconcile")),
		metrics: newMetrics(reg),
	}
}

// Audit implements [ledger.Keeper].
func (r *Reconciler) Audit(ctx context.Context, item like.Item, repair bool) (ledger.Audit, error) {
	a, err := r.Keeper.Audit(ctx, item, repair)
	if err == nil {
		r.note(ctx, a)
	}
	return a, err
}

// AuditAll implements [ledger.Keeper]. The item that is one correction too many is
// followed by a [StoppedError] as the last element; what remains is untouched.
func (r *Reconciler) AuditAll(ctx context.Context, repair bool) iter.Seq2[ledger.Audit, error] {
	return func(yield func(ledger.Audit, error) bool) {
		begin, run := time.Now(), Run{}
		pace := pacer{share: r.cfg.Share}
		pace.resume()
		for a, err := range r.Keeper.AuditAll(ctx, repair) {
			if err == nil {
				r.note(ctx, a)
				err = pace.pause(ctx)
			}
			if !yield(a, err) || err != nil {
				return
			}
			run.add(a)
			if run.Repaired > r.cfg.MaxRepairs {
				yield(ledger.Audit{}, &StoppedError{run.Repaired})
				return
			}
			pace.resume()
		}
		run.Ended, run.Took = time.Now(), time.Since(begin)
		r.finished(run)
	}
}

func (run *Run) add(a ledger.Audit) {
	run.Items++
	if a.Drift() {
		run.Drifted++
	}
	if a.Repaired {
		run.Repaired++
	}
}

// Run audits everything periodically until ctx is done, and then returns nil. A
// run that fails is logged and tried again at the next turn.
func (r *Reconciler) Run(ctx context.Context) error {
	if r.cfg.Every == 0 {
		return nil
	}
	tick := time.NewTicker(r.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		r.runOnce(ctx)
	}
}

func (r *Reconciler) runOnce(ctx context.Context) {
	items, drifted, begin := 0, 0, time.Now()
	for a, err := range r.AuditAll(ctx, true) {
		if err != nil {
			if ctx.Err() == nil {
				r.log.LogAttrs(ctx, slog.LevelError, "audit did not finish", slog.Any("error", err), slog.Int("items", items))
			}
			return
		}
		items++
		if a.Drift() {
			drifted++
		}
	}
	r.log.LogAttrs(ctx, slog.LevelInfo, "audit finished",
		slog.Int("items", items), slog.Int("drifted", drifted), slog.Duration("took", time.Since(begin)))
}

// note counts one audited item, and reports a difference.
func (r *Reconciler) note(ctx context.Context, a ledger.Audit) {
	r.metrics.items.Inc()
	if !a.Drift() {
		return
	}
	r.metrics.found.Inc()
	if a.Repaired {
		r.metrics.corrected.Inc()
	}
	r.log.LogAttrs(ctx, slog.LevelError, "drift found",
		slog.String("item", a.Item.String()), slog.Int64("facts", a.Facts), slog.Int64("total", a.Total),
		slog.Int64("unlisted", a.Unlisted), slog.Int64("phantom", a.Phantom), slog.Bool("corrected", a.Repaired))
}

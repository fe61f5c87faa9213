package move

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// TestMove moves between ledgers of every kind under the hands of a crowd. While
// the source stands still both hold the same facts, and afterwards it moves on.
func TestMove(t *testing.T) {
	for from := range kinds {
		for to := range kinds {
			for _, all := range []bool{true, false} {
				t.Run(from+" to "+to, func(t *testing.T) {
					t.Parallel()
					cfg := config()
					if cfg.VerifyAll = all; !all {
						cfg.Settle = time.Second // the feed has to name everything, on a loaded machine too
					}
					testMove(t, cfg, open(t, from), open(t, to))
				})
			}
		}
	}
}

func testMove(t *testing.T, cfg Config, source, target ledger.Ledger) {
	c := crowd{ledger: source, users: 200, items: 300, pause: lag / 100}
	c.fill(t, 5000, 1)
	stop := c.run(t, 2)
	defer stop()
	moved := 0
	cfg.Switch = func(_ context.Context, r Report) error {
		if moved = sameFacts(t, source, target); int64(moved) != r.Likes && cfg.VerifyAll {
			t.Errorf("%d facts were moved, %d reported", moved, r.Likes)
		}
		return nil
	}
	r, err := run(t.Context(), cfg, source, target)
	if err != nil {
		t.Fatal(err)
	}
	if moved == 0 || r.Copied == 0 || r.Frozen == 0 {
		t.Errorf("moved %d facts, reported %+v", moved, r)
	}
	if _, err := source.Apply(t.Context(), like.Command{Item: like.Item{Collection: "posts", ID: "1"}, User: "late", Op: like.OpLike}); err != nil {
		t.Errorf("the source does not move on: %v", err)
	}
	stop()
	for a, err := range target.AuditAll(t.Context(), false) {
		if err != nil || a.Drift() {
			t.Errorf("audit of the target: %+v, %v", a, err)
		}
	}
}

// TestMoveWithoutFreeze copies under the hands of a crowd; once that has gone, a
// second run makes both equal.
func TestMoveWithoutFreeze(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			source, target := open(t, kind), open(t, kind)
			c := crowd{ledger: source, users: 200, items: 300, pause: lag / 10}
			c.fill(t, 3000, 1)
			stop := c.run(t, 2)
			cfg := config()
			cfg.Freeze = false
			cfg.Switch = func(context.Context, Report) error {
				t.Error("the switch is offered without a standstill")
				return nil
			}
			if _, err := run(t.Context(), cfg, source, target); err != nil {
				t.Error(err)
			}
			stop()
			cfg.Resume = true
			if _, err := run(t.Context(), cfg, source, target); err != nil {
				t.Error(err)
			}
			sameFacts(t, source, target)
		})
	}
}

// TestTargetMustBeEmpty protects the likes of a target that was named by mistake.
func TestTargetMustBeEmpty(t *testing.T) {
	source, target := open(t, "memory"), open(t, "memory")
	crowd{ledger: source, users: 10, items: 10}.fill(t, 100, 1)
	other := like.Command{Item: like.Item{Collection: "games", ID: "1"}, User: "u", Op: like.OpLike}
	if _, err := target.Apply(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), config(), source, target); !errors.Is(err, ErrNotEmpty) || !errors.Is(err, like.ErrInvalid) {
		t.Errorf("error %v", err)
	}
	if n := len(facts(t, target)); n != 1 {
		t.Errorf("the target holds %d facts, want its own", n)
	}
	cfg := config()
	cfg.Resume = true
	if _, err := run(t.Context(), cfg, source, target); err != nil {
		t.Error(err)
	}
	sameFacts(t, source, target)
}

// TestResumeCopiesWhatIsMissing moves twice; the second run sends nothing.
func TestResumeCopiesWhatIsMissing(t *testing.T) {
	source, target := open(t, "memory"), open(t, "memory")
	c := crowd{ledger: source, users: 100, items: 1000}
	c.fill(t, 5000, 1)
	cfg := config()
	cfg.Resume = true
	first, err := run(t.Context(), cfg, source, target)
	if err != nil || first.Copied != first.Likes || first.Likes == 0 {
		t.Errorf("first run %+v, %v", first, err)
	}
	if r, err := run(t.Context(), cfg, source, target); err != nil || r.Copied != 0 || r.Changed != 0 || r.Likes != first.Likes {
		t.Errorf("second run %+v, %v", r, err)
	}
	c.fill(t, 10, 2)
	if r, err := run(t.Context(), cfg, source, target); err != nil || r.Copied > r.Likes/2 {
		t.Errorf("third run %+v, %v", r, err)
	}
	sameFacts(t, source, target)
}

// TestTimesThatDiffer moves into a ledger that holds the same users at other times,
// newer and older, in lists of many pages.
func TestTimesThatDiffer(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			source, target := open(t, kind), open(t, kind)
			item := like.Item{Collection: "posts", ID: "1"}
			const n = 3*ledger.MaxPage + 7
			for k, l := range []ledger.Ledger{source, target} {
				var cmds []like.Command
				for u := range n {
					at := like.Stamp(1_700_000_000_000_000 + u/10)
					if k == 1 && u%3 != 0 {
						at += like.Stamp(n * (u%3*2 - 3)) // before or after everybody's
					}
					cmds = append(cmds, like.Command{Item: item, User: like.User("u" + string(rune('a'+u%26)) + strings.Repeat("x", u/26%90) + string(rune('a'+u/2340))), Op: like.OpLike, At: at})
				}
				for start := 0; start < n; start += 1000 {
					if _, err := l.ApplyMany(t.Context(), cmds[start:min(start+1000, n)]); err != nil {
						t.Fatal(err)
					}
				}
			}
			cfg := config()
			cfg.Resume = true
			if _, err := run(t.Context(), cfg, source, target); err != nil {
				t.Error(err)
			}
			sameFacts(t, source, target)
		})
	}
}

// deaf is a source whose feed names nothing.
type deaf struct{ Source }

func (d deaf) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		if yield(nil, nil) {
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
		}
	}
}

// mute is a source whose feed always ends at once.
type mute struct{ Source }

func (m mute) Feed(context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) { yield(nil, like.ErrOverloaded) }
}

// late is a source on which something changes right before it stands still.
type late struct {
	Source
	ledger ledger.Writer
}

func (l late) Freeze(ctx context.Context, while func(context.Context) error) error {
	cmd := like.Command{Item: like.Item{Collection: "posts", ID: "late"}, User: "late", Op: like.OpLike}
	if _, err := l.ledger.Apply(ctx, cmd); err != nil {
		return err
	}
	return l.Source.Freeze(ctx, while)
}

// TestWithoutCatchUp shows that a move needs the feed: without it, one that compares
// only what changed misses something. One that compares
// everything while the source stands still does not need it, and one whose feed says
// that it is broken compares everything by itself.
func TestWithoutCatchUp(t *testing.T) {
	for name, tt := range map[string]struct {
		source func(Source) Source
		limit  int
		all    bool
		equal  bool
	}{
		"deaf":                {func(s Source) Source { return deaf{s} }, maxChanged, false, false},
		"deaf, comparing all": {func(s Source) Source { return deaf{s} }, maxChanged, true, true},
		"without a feed":      {func(s Source) Source { return mute{s} }, maxChanged, false, true},
		"with a small set":    {func(s Source) Source { return s }, 7, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := open(t, "memory"), open(t, "memory")
			c := crowd{ledger: source, users: 200, items: 300, pause: lag / 100}
			c.fill(t, 5000, 1)
			stop := c.run(t, 2)
			defer stop()
			cfg := config()
			cfg.VerifyAll = tt.all
			equal := false
			cfg.Switch = func(context.Context, Report) error {
				want, got := facts(t, source), facts(t, target)
				equal = firstDifference(want, got) == firstDifference(want, want) && len(want) == len(got)
				return nil
			}
			m := newMover(cfg, late{tt.source(source.(Source)), source}, target)
			m.changes.limit, m.bucketBits = tt.limit, 10
			_, err := m.move(t.Context())
			if err != nil || equal != tt.equal {
				t.Errorf("equal %v, error %v", equal, err)
			}
		})
	}
}

// timeless is a target that does not keep the times of likes.
type timeless struct{ ledger.Ledger }

func (l timeless) ApplyMany(ctx context.Context, cmds []like.Command) ([]ledger.Ack, error) {
	own := append([]like.Command(nil), cmds...)
	for k := range own {
		own[k].At = 0
	}
	return l.Ledger.ApplyMany(ctx, own)
}

// TestDiffers moves to targets that cannot be made equal.
func TestDiffers(t *testing.T) {
	for how, set := range map[string]func(*Config){
		"comparing all": func(*Config) {}, "comparing what changed": func(c *Config) { c.VerifyAll = false },
		"while the source goes on": func(c *Config) { c.Freeze = false },
	} {
		source, target := open(t, "memory"), open(t, "memory")
		crowd{ledger: source, users: 20, items: 30}.fill(t, 500, 1)
		cfg := config()
		set(&cfg)
		cfg.Switch = func(context.Context, Report) error {
			t.Error("the switch is offered")
			return nil
		}
		if _, err := run(t.Context(), cfg, source, timeless{target}); !errors.Is(err, ErrDiffers) {
			t.Errorf("%s: error %v", how, err)
		}
	}
}

// meddled is a target that somebody else writes to, whenever everything is compared.
type meddled struct{ ledger.Ledger }

func (l meddled) Export(ctx context.Context) iter.Seq2[like.Fact, error] {
	for op := like.OpUnlike; op >= like.OpLike; op-- {
		_, _ = l.Apply(ctx, like.Command{Item: like.Item{Collection: "posts", ID: "1"}, User: "meddler", Op: op})
	}
	return l.Ledger.Export(ctx)
}

// TestMeddled moves to a target that goes on changing.
func TestMeddled(t *testing.T) {
	source, target := open(t, "memory"), open(t, "memory")
	crowd{ledger: source, users: 20, items: 30}.fill(t, 500, 1)
	cfg := config()
	cfg.Resume = true
	if _, err := run(t.Context(), cfg, source, meddled{target}); !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("error %v", err)
	}
}

// TestNotes shows what a person reads.
func TestNotes(t *testing.T) {
	source, target := open(t, "memory"), open(t, "memory")
	crowd{ledger: source, users: 20, items: 30}.fill(t, 500, 1)
	cfg := config()
	var out bytes.Buffer
	cfg.Out = &out
	if _, err := run(t.Context(), cfg, source, target); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"copying: ", "comparing everything: ", "stands still"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

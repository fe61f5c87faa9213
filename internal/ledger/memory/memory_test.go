package memory_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/ledger/conformance"
	"likewise/internal/ledger/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness opens memory ledgers of one configuration.
func harness(name string, cfg memory.Config) conformance.Harness {
	return conformance.Harness{
		Name: name,
		Open: func(tb testing.TB, now func() time.Time) ledger.Ledger {
			c := cfg
			c.Now = now
			l := memory.New(c)
			tb.Cleanup(func() { l.Close() })
			return l
		},
		Reopen: func(tb testing.TB, l ledger.Ledger) ledger.Ledger {
			next := l.(*memory.Ledger).Reopen()
			tb.Cleanup(func() { next.Close() })
			return next
		},
		Injure:  injure,
		Settle:  cfg.Lag,
		Backlog: ledger.FeedBacklog + 1,
		Lacks:   []conformance.Lack{{Rule: "W1", Reason: "keeps nothing beyond its process"}},
	}
}

func injure(_ testing.TB, l ledger.Ledger, in conformance.Injury) bool {
	m := l.(*memory.Ledger)
	switch {
	case in.Unlist:
		m.Unlist(in.Fact.Item, in.Fact.User)
	case in.Phantom:
		m.Phantom(in.Fact)
	default:
		m.Skew(in.Fact.Item, in.Skew)
	}
	return true
}

func TestConformance(t *testing.T) {
	t.Run("instant", func(t *testing.T) {
		conformance.Run(t, harness("memory", memory.Config{}))
	})
	t.Run("lagging", func(t *testing.T) {
		conformance.Run(t, harness("memory, lagging", memory.Config{Lag: 15 * time.Millisecond, Seed: 1}))
	})
}

func TestModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run("instant", func(t *testing.T) {
			conformance.Model(t, harness("", memory.Config{}), seed)
		})
		t.Run("lagging", func(t *testing.T) {
			conformance.Model(t, harness("", memory.Config{Lag: 10 * time.Millisecond, Seed: seed}), seed)
		})
	}
}

func BenchmarkLedger(b *testing.B) { conformance.Bench(b, harness("", memory.Config{})) }

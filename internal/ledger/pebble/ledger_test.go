package pebble

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"likewise/internal/ledger"
	"likewise/internal/ledger/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig is a small store on a file system in memory.
func testConfig(tb testing.TB, fs *crashFS, now func() time.Time) Config {
	cfg := DefaultConfig()
	cfg.Dir = "ledger"
	cfg.FS = fs
	cfg.Now = now
	cfg.CacheBytes = 1 << 20
	cfg.MemtableBytes = 1 << 20
	cfg.QueueAge = time.Minute // a loaded machine is not an overloaded ledger
	cfg.OnFatal = func(err error) {
		if !fs.crashed() {
			tb.Errorf("the store failed: %v", err)
		}
	}
	return cfg
}

func openTest(tb testing.TB, cfg Config) *Ledger {
	tb.Helper()
	l, err := Open(cfg)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil && !cfg.FS.(*crashFS).crashed() {
			tb.Errorf("Close: %v", err)
		}
	})
	return l
}

// harness opens ledgers on a machine that loses everything unsynced when it
// crashes.
func harness() conformance.Harness {
	var fs *crashFS // of the ledger opened last, which backups are written to
	return conformance.Harness{
		Name: "pebble",
		Open: func(tb testing.TB, now func() time.Time) ledger.Ledger {
			fs = newCrashFS()
			return openTest(tb, testConfig(tb, fs, now))
		},
		Reopen: func(tb testing.TB, l ledger.Ledger) ledger.Ledger {
			cfg := l.(*Ledger).cfg
			fs = cfg.FS.(*crashFS).crash()
			return openTest(tb, testConfig(tb, fs, cfg.Now))
		},
		Restore: func(tb testing.TB, dir string, now func() time.Time) ledger.Ledger {
			cfg := testConfig(tb, fs, now)
			cfg.Dir = dir
			return openTest(tb, cfg)
		},
		Injure:  injure,
		Backlog: ledger.FeedBacklog + 1,
	}
}

func TestConformance(t *testing.T) { conformance.Run(t, harness()) }

func TestModel(t *testing.T) { conformance.Model(t, harness(), 0) }

// BenchmarkLedger measures on the disk, with the settings of production.
func BenchmarkLedger(b *testing.B) {
	conformance.Bench(b, conformance.Harness{
		Name: "pebble",
		Open: func(tb testing.TB, now func() time.Time) ledger.Ledger {
			cfg := DefaultConfig()
			cfg.Dir = filepath.Join(tb.TempDir(), "ledger")
			cfg.Now = now
			cfg.QueueAge = time.Minute // measured to the end, however busy the disk is
			l, err := Open(cfg)
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { _ = l.Close() })
			return l
		},
	})
}

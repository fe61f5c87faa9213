package pebble

import (
	"fmt"
	"log/slog"
)

// engineLogger passes what the engine reports to slog. What the engine calls
// fatal ends the ledger.
type engineLogger struct {
	log  *slog.Logger
	fail func(error)
}

func (e engineLogger) Infof(format string, args ...any) {
	e.log.Debug("engine: " + fmt.Sprintf(format, args...))
}

func (e engineLogger) Errorf(format string, args ...any) {
	e.log.Error("engine: " + fmt.Sprintf(format, args...))
}

// Fatalf does not return in production, where OnFatal ends the process. Where it
// does return, in tests, the engine must not run on.
func (e engineLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	e.fail(err)
	panic(err)
}

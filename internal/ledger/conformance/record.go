package conformance

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// recorder is a T that remembers failures instead of failing.
type recorder struct {
	ctx      context.Context
	mu       sync.Mutex
	failures []string
}

func (r *recorder) Helper()                  {}
func (r *recorder) Logf(string, ...any)      {}
func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// record runs check on a fresh ledger and returns its failures. It has its own
// goroutine because a fatal one ends it.
func record(tb testing.TB, h Harness, patience time.Duration, check func(*run)) []string {
	rec := &recorder{ctx: tb.Context()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := newRun(rec, tb, h)
		r.patience = patience
		check(r)
	}()
	<-done
	return rec.failures
}

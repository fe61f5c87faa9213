package move

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// display shows a person what a run does: a line for each stage that has ended, and
// on a terminal the one under way. Notes may come from any goroutine, stages come
// from one, after each other.
type display struct {
	mu    sync.Mutex // one line at a time
	out   io.Writer
	all   *mpb.Progress // nil without a terminal
	bar   *mpb.Bar      // of the stage under way
	began time.Time
	done  atomic.Int64 // of the stage under way
}

func newDisplay(cfg Config) *display {
	d := &display{out: cfg.Out}
	if cfg.Terminal {
		d.all = mpb.New(mpb.WithOutput(cfg.Out))
		d.out = d.all
	}
	return d
}

// stage begins a stage, which ends with end.
func (d *display) stage(name string) (end func()) {
	d.began = time.Now()
	d.done.Store(0)
	if d.all != nil {
		d.bar = d.all.AddSpinner(0, mpb.BarRemoveOnComplete(), mpb.PrependDecorators(
			decor.Any(func(decor.Statistics) string { return fmt.Sprintf("%s: %d ", name, d.done.Load()) }),
			decor.Elapsed(decor.ET_STYLE_GO)))
	}
	return func() {
		if d.bar != nil {
			d.bar.Abort(true)
			d.bar = nil
		}
		if n := d.done.Load(); n > 0 {
			d.notef("%s: %d in %v", name, n, time.Since(d.began).Round(time.Millisecond))
		}
	}
}

// count counts within a stage.
func (d *display) count(n int) { d.done.Add(int64(n)) }

func (d *display) notef(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, format+"\n", args...)
}

// close ends the display's goroutines.
func (d *display) close() {
	if d.all != nil {
		d.all.Wait()
	}
}

package transfer

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// source is an opened input.
type source struct {
	io.ReadCloser
	size int64 // bytes, 0 when unknown
}

func openInput(cfg ImportConfig) (*source, error) {
	if cfg.Input == "-" {
		return &source{ReadCloser: io.NopCloser(cfg.Stdin)}, nil
	}
	f, err := os.Open(cfg.Input)
	if err != nil {
		return nil, err
	}
	s := &source{ReadCloser: f}
	if info, err := f.Stat(); err == nil {
		s.size = info.Size()
	}
	return s, nil
}

// display shows a person what an import does: notes and bad lines as text, and on
// a terminal a bar below them. Safe for concurrent use.
type display struct {
	mu  sync.Mutex // one line at a time
	out io.Writer
	all *mpb.Progress // nil without a bar
	bar *mpb.Bar
}

func newDisplay(cfg ImportConfig, size int64) *display {
	d := &display{out: cfg.Out}
	if !cfg.Terminal {
		return d
	}
	d.all = mpb.New(mpb.WithOutput(cfg.Out))
	d.out = d.all
	if size == 0 {
		d.bar = d.all.AddSpinner(0, mpb.PrependDecorators(decor.CurrentKibiByte("% .1f read ")))
		return d
	}
	d.bar = d.all.AddBar(size,
		mpb.PrependDecorators(decor.CountersKibiByte("% .1f / % .1f ")),
		mpb.AppendDecorators(decor.Percentage(), decor.Name(" left "), decor.AverageETA(decor.ET_STYLE_GO)))
	return d
}

// watch returns r with every byte read from it moving the bar.
func (d *display) watch(r io.Reader) io.Reader {
	if d.bar == nil {
		return r
	}
	return io.TeeReader(r, barWriter{d.bar})
}

// barWriter moves a bar by what is written to it.
type barWriter struct{ bar *mpb.Bar }

func (w barWriter) Write(b []byte) (int, error) {
	w.bar.IncrBy(len(b))
	return len(b), nil
}

func (d *display) badLine(number int64, reason error) { d.notef("line %d: %v", number, reason) }

func (d *display) notef(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, format+"\n", args...)
}

// close removes the bar and ends its goroutines.
func (d *display) close() {
	if d.bar == nil {
		return
	}
	d.bar.Abort(true)
	d.all.Wait()
}

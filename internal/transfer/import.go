package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// ImportConfig says what to import and how.
type ImportConfig struct {
	// Input is FILE, FILE.gz, or "-" for Stdin; compression is recognised by content.
	Input string
	Stdin io.Reader
	// ProgressFile is where to note how far the import got; empty means beside
	// Input, or nowhere for standard input. It is removed at the end.
	ProgressFile string
	// Restart begins anew, whatever the progress file says.
	Restart bool
	// BatchSize is the number of lines sent together, at most ledger.MaxBatch, and
	// InFlight the number of batches on their way at one time.
	BatchSize, InFlight int
	// SaveEvery is the least time between two writes of the progress file.
	SaveEvery time.Duration
	// Out takes bad lines and notes; with Terminal also a progress bar.
	Out      io.Writer
	Terminal bool
}

// DefaultImport returns how to import Input.
func DefaultImport(input string) ImportConfig {
	return ImportConfig{
		Input: input, Stdin: os.Stdin, Out: os.Stderr,
		BatchSize: ledger.MaxBatch, InFlight: 4, SaveEvery: time.Second,
	}
}

// Validate reports, as [like.ErrInvalid], why the settings cannot work.
func (c ImportConfig) Validate() error {
	switch {
	case c.BatchSize < 1 || c.BatchSize > ledger.MaxBatch:
		return fmt.Errorf("%w: lines of a batch must be from 1 to %d", like.ErrInvalid, ledger.MaxBatch)
	case c.InFlight < 1:
		return fmt.Errorf("%w: at least one batch must be in flight", like.ErrInvalid)
	}
	return nil
}

// Send applies commands, at most ledger.MaxBatch, durably. An error that wraps
// [like.ErrInvalid] says that at least one cannot be accepted and that none was
// applied; any other ends the import. It is called from several goroutines.
type Send func(ctx context.Context, cmds []like.Command) error

// ErrBadLines says that an import came to its end, but not with every line.
var ErrBadLines = errors.New("some lines were not imported")

// Import sends every like of the input, each at least once, and reports bad lines
// on cfg.Out. Of several likes of one user and item it is not defined which one's
// time stays. The summary includes what earlier, interrupted runs did. A done
// context ends it in a state that the next run continues.
func Import(ctx context.Context, cfg ImportConfig, send Send) (Summary, error) {
	if err := cfg.Validate(); err != nil {
		return Summary{}, err
	}
	in, err := openInput(cfg)
	if err != nil {
		return Summary{}, err
	}
	defer in.Close()
	show := newDisplay(cfg, in.size)
	defer show.close()
	lines, err := newLineReader(show.watch(in))
	if err != nil {
		return Summary{}, fmt.Errorf("%s: %w", cfg.Input, err)
	}
	im := &importer{cfg: cfg, send: send, show: show, lines: lines, path: progressPath(cfg)}
	if err := im.resume(); err != nil {
		return Summary{}, err
	}
	if err := im.run(ctx); err != nil {
		im.save()
		return im.done.Summary, fmt.Errorf("stopped behind line %d: %w", im.done.Lines, err)
	}
	im.forget()
	if im.done.Bad > 0 {
		return im.done.Summary, fmt.Errorf("%w: %d of %d; each was reported with its reason", ErrBadLines, im.done.Bad, im.done.Lines)
	}
	return im.done.Summary, nil
}

func progressPath(cfg ImportConfig) string {
	if cfg.ProgressFile == "" && cfg.Input != "-" {
		return cfg.Input + ".progress"
	}
	return cfg.ProgressFile
}

// importer is one run. Its goroutines end with run.
type importer struct {
	cfg   ImportConfig
	send  Send
	show  *display
	lines *lineReader
	path  string // of the progress file, "" without

	ahead chan struct{} // one for each batch that was read and is not in done yet
	done  progress      // what is settled, in the order of the input; collect's own
	saved time.Time     // when done was last written
}

// maxAhead bounds how many batches, for each in flight, are settled behind one
// that takes long.
const maxAhead = 64

// batch is a stretch of the input.
type batch struct {
	number   int
	commands []like.Command
	at       []int64  // line number of each command
	end      progress // Lines and Digest behind it, Bad and Accepted within it
}

// resume passes over what earlier runs settled.
func (im *importer) resume() error {
	if im.path == "" || im.cfg.Restart {
		return nil
	}
	p, found, err := loadProgress(im.path)
	if err != nil || !found {
		return err
	}
	if err := im.lines.skip(p.Lines); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if im.lines.lines != p.Lines || im.lines.sum() != p.Digest {
		return fmt.Errorf("%s is not the input that %s was written for: its first %d lines differ; --restart begins anew",
			im.cfg.Input, im.path, p.Lines)
	}
	im.done = p
	im.show.notef("continuing behind line %d", p.Lines)
	return nil
}

func (im *importer) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan *batch)
	im.ahead = make(chan struct{}, maxAhead*im.cfg.InFlight)
	settled := make(chan *batch, im.cfg.InFlight)
	group.Go(func() error {
		defer close(batches)
		return im.read(ctx, batches)
	})
	var senders sync.WaitGroup
	for range im.cfg.InFlight {
		senders.Add(1)
		group.Go(func() error {
			defer senders.Done()
			for b := range batches {
				if err := im.settle(ctx, b.commands, b.at, b); err != nil {
					return err
				}
				b.commands, b.at = nil, nil // the batch may wait for an earlier one
				settled <- b
			}
			return nil
		})
	}
	group.Go(func() error {
		senders.Wait()
		close(settled)
		return nil
	})
	im.collect(settled)
	return group.Wait()
}

// read cuts the input into batches.
func (im *importer) read(ctx context.Context, batches chan<- *batch) error {
	for number, more := 0, true; more; number++ {
		select {
		case im.ahead <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		b := &batch{number: number}
		var err error
		if more, err = im.fill(b); err != nil {
			return err
		}
		select {
		case batches <- b:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// fill reads the lines of one batch, and reports whether there may be more.
func (im *importer) fill(b *batch) (more bool, err error) {
	more = true
	for more && len(b.commands) < im.cfg.BatchSize {
		line, err := im.lines.next()
		var cmd like.Command
		switch {
		case errors.Is(err, io.EOF):
			more = false
			continue
		case err == nil && len(line) == 0:
			continue
		case err == nil:
			cmd, err = ParseLine(line)
		case !errors.Is(err, errLongLine):
			return false, err
		}
		if err != nil {
			b.end.Bad++
			im.show.badLine(im.lines.lines, err)
			continue
		}
		b.commands = append(b.commands, cmd)
		b.at = append(b.at, im.lines.lines)
	}
	b.end.Lines, b.end.Digest = im.lines.lines, im.lines.sum()
	return more, nil
}

// settle sends commands of b. When they are refused it halves them until the ones
// at fault stand alone.
func (im *importer) settle(ctx context.Context, cmds []like.Command, at []int64, b *batch) error {
	if len(cmds) == 0 {
		return nil
	}
	err := im.send(ctx, cmds)
	switch {
	case err == nil:
		b.end.Accepted += int64(len(cmds))
		return nil
	case !errors.Is(err, like.ErrInvalid):
		return err
	case len(cmds) == 1:
		b.end.Bad++
		im.show.badLine(at[0], err)
		return nil
	}
	half := len(cmds) / 2
	if err := im.settle(ctx, cmds[:half], at[:half], b); err != nil {
		return err
	}
	return im.settle(ctx, cmds[half:], at[half:], b)
}

// collect puts settled batches in order again and notes the progress.
func (im *importer) collect(settled <-chan *batch) {
	early := map[int]*batch{}
	next := 0
	for b := range settled {
		early[b.number] = b
		for b := early[next]; b != nil; b = early[next] {
			delete(early, next)
			<-im.ahead
			next++
			im.done.Lines, im.done.Digest = b.end.Lines, b.end.Digest
			im.done.Accepted += b.end.Accepted
			im.done.Bad += b.end.Bad
		}
		if time.Since(im.saved) >= im.cfg.SaveEvery {
			im.save()
		}
	}
}

// save writes the progress file. An import goes on without one.
func (im *importer) save() {
	if im.path == "" || im.done.Lines == 0 {
		return
	}
	im.saved = time.Now()
	if err := im.done.save(im.path); err != nil {
		im.show.notef("progress cannot be kept, so that a new run would begin from the start (which changes nothing twice): %v", err)
		im.path = ""
	}
}

// forget removes the progress file of an import that came to its end.
func (im *importer) forget() {
	if im.path == "" {
		return
	}
	if err := os.Remove(im.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		im.show.notef("the progress file stays: %v", err)
	}
}

package transfer

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"likewise/internal/like"
)

// sink collects what an import sends.
type sink struct {
	mu    sync.Mutex
	got   []string
	calls int
	fail  func(cmds []like.Command, call int) error
}

func (s *sink) send(_ context.Context, cmds []like.Command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.fail != nil {
		if err := s.fail(cmds, s.calls); err != nil {
			return err
		}
	}
	for _, c := range cmds {
		s.got = append(s.got, string(c.User))
	}
	return nil
}

func (s *sink) sorted() []string { return slices.Sorted(slices.Values(s.got)) }

func userLine(user string) string {
	return fmt.Sprintf(`{"collection":"posts","id":"1","user":%q,"liked_at":"2026-01-31T12:00:00Z"}`, user)
}

// users returns u00, u01, … and the lines of their likes.
func users(n int) (names, lines []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("u%02d", i))
		lines = append(lines, userLine(names[i]))
	}
	return names, lines
}

func writeInput(t *testing.T, name string, lines ...string) string {
	t.Helper()
	var b bytes.Buffer
	text := strings.Join(lines, "\n")
	if strings.HasSuffix(name, ".gz") {
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	} else {
		b.WriteString(text)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func config(input string, out *bytes.Buffer) ImportConfig {
	cfg := DefaultImport(input)
	cfg.BatchSize, cfg.InFlight, cfg.SaveEvery, cfg.Out = 4, 3, 0, out
	return cfg
}

func TestImportSendsEveryLine(t *testing.T) {
	names, lines := users(30)
	for _, name := range []string{"likes.ndjson", "likes.ndjson.gz", "gzip-by-content"} {
		t.Run(name, func(t *testing.T) {
			path := writeInput(t, name, lines...)
			if name == "gzip-by-content" {
				if err := os.Rename(writeInput(t, "x.gz", lines...), path); err != nil {
					t.Fatal(err)
				}
			}
			var s sink
			var out bytes.Buffer
			sum, err := Import(t.Context(), config(path, &out), s.send)
			if err != nil || sum != (Summary{Lines: 30, Accepted: 30}) {
				t.Fatalf("summary %+v, error %v", sum, err)
			}
			if diff := cmp.Diff(names, s.sorted()); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if s.calls != 8 || out.Len() > 0 {
				t.Errorf("%d calls, printed %q; want 8 and nothing", s.calls, out.String())
			}
			if _, err := os.Stat(path + ".progress"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the progress file is still there: %v", err)
			}
		})
	}
}

func TestImportFromStdinKeepsNoProgress(t *testing.T) {
	_, lines := users(5)
	t.Chdir(t.TempDir())
	var s sink
	var out bytes.Buffer
	cfg := config("-", &out)
	cfg.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	s.fail = func([]like.Command, int) error { return like.ErrUnavailable }
	if _, err := Import(t.Context(), cfg, s.send); !errors.Is(err, like.ErrUnavailable) {
		t.Fatalf("error %v, want that of the server", err)
	}
	if files, _ := os.ReadDir("."); len(files) > 0 {
		t.Errorf("files were left: %v", files)
	}
}

func TestBadLinesAreReportedAndKeptOut(t *testing.T) {
	path := writeInput(t, "likes.ndjson",
		userLine("a"), "nonsense", "", userLine("late"), userLine("b"),
		strings.Repeat("x", maxLineBytes+10), userLine("c"), userLine("d"), "{}")
	var s sink
	s.fail = func(cmds []like.Command, _ int) error {
		if slices.ContainsFunc(cmds, func(c like.Command) bool { return c.User == "late" }) {
			return fmt.Errorf("%w: time is in the future", like.ErrInvalid)
		}
		return nil
	}
	var out bytes.Buffer
	sum, err := Import(t.Context(), config(path, &out), s.send)
	if !errors.Is(err, ErrBadLines) || sum != (Summary{Lines: 9, Accepted: 4, Bad: 4}) {
		t.Errorf("summary %+v, error %v", sum, err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, s.sorted()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	reports := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(reports)
	want := []string{"line 2: invalid", "line 4: invalid: time is in the future", "line 6: invalid: the line is longer", "line 9: invalid: collection is empty"}
	for i, prefix := range want {
		if len(reports) != len(want) || !strings.HasPrefix(reports[i], prefix) {
			t.Fatalf("reported:\n%s\nwant the beginnings %q", out.String(), want)
		}
	}
}

func TestImportContinuesWhereItStopped(t *testing.T) {
	names, lines := users(30)
	lines[1] = "nonsense"
	for _, name := range []string{"likes.ndjson", "likes.ndjson.gz"} {
		t.Run(name, func(t *testing.T) {
			path := writeInput(t, name, lines...)
			var out bytes.Buffer
			cfg := config(path, &out)
			cfg.InFlight = 1
			var first, second sink
			first.fail = func(_ []like.Command, call int) error {
				if call == 5 {
					return like.ErrUnavailable
				}
				return nil
			}
			sum, err := Import(t.Context(), cfg, first.send)
			if !errors.Is(err, like.ErrUnavailable) || sum != (Summary{Lines: 17, Accepted: 16, Bad: 1}) {
				t.Fatalf("interrupted: summary %+v, error %v", sum, err)
			}
			sum, err = Import(t.Context(), cfg, second.send)
			if !errors.Is(err, ErrBadLines) || sum != (Summary{Lines: 30, Accepted: 29, Bad: 1}) {
				t.Fatalf("continued: summary %+v, error %v; want the bad line of the first run counted", sum, err)
			}
			if diff := cmp.Diff(names[17:], second.sorted()); diff != "" {
				t.Errorf("sent by the second run (-want +got):\n%s", diff)
			}
			if !strings.Contains(out.String(), "continuing behind line 17") {
				t.Errorf("printed %q", out.String())
			}
		})
	}
}

// interrupted leaves a progress file behind.
func interrupted(t *testing.T) ImportConfig {
	t.Helper()
	_, lines := users(12)
	cfg := config(writeInput(t, "likes.ndjson", lines...), new(bytes.Buffer))
	cfg.InFlight = 1
	var s sink
	s.fail = func(_ []like.Command, call int) error {
		if call == 2 {
			return like.ErrUnavailable
		}
		return nil
	}
	if _, err := Import(t.Context(), cfg, s.send); !errors.Is(err, like.ErrUnavailable) {
		t.Fatal(err)
	}
	return cfg
}

func TestProgressOfAnotherInputIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, cfg ImportConfig)
	}{
		{"other input", func(t *testing.T, cfg ImportConfig) {
			_, lines := users(12)
			lines[0] = userLine("somebody else")
			write(t, cfg.Input, strings.Join(lines, "\n"))
		}},
		{"shorter input", func(t *testing.T, cfg ImportConfig) { write(t, cfg.Input, userLine("u00")) }},
		{"torn progress", func(t *testing.T, cfg ImportConfig) { write(t, cfg.Input+".progress", `{"dig`) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := interrupted(t)
			tc.change(t, cfg)
			var s sink
			if _, err := Import(t.Context(), cfg, s.send); err == nil || !strings.Contains(err.Error(), "--restart") || s.calls > 0 {
				t.Fatalf("error %v after %d calls; want one that names --restart", err, s.calls)
			}
			cfg.Restart = true
			if _, err := Import(t.Context(), cfg, s.send); err != nil || s.got[0] == "u04" {
				t.Fatalf("restarted: error %v, sent %v", err, s.got)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAppendedInputContinues(t *testing.T) {
	cfg := interrupted(t)
	_, lines := users(14)
	write(t, cfg.Input, strings.Join(lines, "\n"))
	var s sink
	sum, err := Import(t.Context(), cfg, s.send)
	if err != nil || sum.Lines != 14 || len(s.got) != 10 {
		t.Fatalf("summary %+v, error %v, sent %v", sum, err, s.got)
	}
}

func TestProgressThatCannotBeKeptIsNoFailure(t *testing.T) {
	_, lines := users(12)
	var s sink
	var out bytes.Buffer
	cfg := config(writeInput(t, "likes.ndjson", lines...), &out)
	cfg.ProgressFile = filepath.Join(t.TempDir(), "missing", "progress")
	if sum, err := Import(t.Context(), cfg, s.send); err != nil || sum.Accepted != 12 {
		t.Fatalf("summary %+v, error %v", sum, err)
	}
	if n := strings.Count(out.String(), "progress cannot be kept"); n != 1 {
		t.Errorf("said %d times that progress cannot be kept:\n%s", n, out.String())
	}
}

func TestCancelledImportSaysWhereItStopped(t *testing.T) {
	_, lines := users(40)
	cfg := config(writeInput(t, "likes.ndjson", lines...), new(bytes.Buffer))
	cfg.InFlight = 1
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopped by hand")
	var s sink
	s.fail = func(_ []like.Command, call int) error {
		if call == 4 {
			cancel(why)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	_, err := Import(ctx, cfg, s.send)
	if !errors.Is(err, why) || !strings.Contains(err.Error(), "stopped behind line") {
		t.Errorf("error %v", err)
	}
	if _, found, err := loadProgress(cfg.Input + ".progress"); !found || err != nil {
		t.Errorf("progress file found %v, error %v", found, err)
	}
}

func TestCutOffGzipIsAnError(t *testing.T) {
	_, lines := users(40)
	path := writeInput(t, "likes.gz", lines...)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(whole[:len(whole)-10]))
	var s sink
	if _, err := Import(t.Context(), config(path, new(bytes.Buffer)), s.send); err == nil || errors.Is(err, ErrBadLines) {
		t.Errorf("error %v", err)
	}
}

func TestImportSettings(t *testing.T) {
	for _, change := range []func(*ImportConfig){
		func(c *ImportConfig) { c.BatchSize = 0 },
		func(c *ImportConfig) { c.BatchSize = 1001 },
		func(c *ImportConfig) { c.InFlight = 0 },
	} {
		cfg := DefaultImport("missing")
		change(&cfg)
		if _, err := Import(t.Context(), cfg, nil); !errors.Is(err, like.ErrInvalid) {
			t.Errorf("%+v: error %v", cfg, err)
		}
	}
}

// A bar must leave no goroutine and swallow no report, whether its size is known.
func TestImportWithABar(t *testing.T) {
	_, lines := users(12)
	text := strings.Join(lines, "\n") + "\nnonsense\n"
	path := writeInput(t, "likes.ndjson", text)
	for _, input := range []string{path, "-"} {
		var s sink
		out := new(bytes.Buffer)
		cfg := config(input, out)
		cfg.Stdin, cfg.Terminal = strings.NewReader(text), true
		if sum, err := Import(t.Context(), cfg, s.send); !errors.Is(err, ErrBadLines) || sum.Accepted != 12 {
			t.Errorf("%s: summary %+v, error %v", input, sum, err)
		}
	}
}

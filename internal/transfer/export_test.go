package transfer

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"likewise/internal/like"
)

const twoLines = "{\"collection\":\"posts\",\"id\":\"1\",\"user\":\"ann\",\"liked_at\":\"1970-01-01T00:00:00.000001Z\"}\n" +
	"{\"collection\":\"posts\",\"id\":\"1\",\"user\":\"bob\",\"liked_at\":\"1970-01-01T00:00:00.000002Z\"}\n"

func facts(fail error) iter.Seq2[like.Fact, error] {
	return func(yield func(like.Fact, error) bool) {
		for i, user := range []like.User{"ann", "bob"} {
			if !yield(like.Fact{Item: like.Item{Collection: "posts", ID: "1"}, User: user, Since: like.Stamp(i + 1)}, nil) {
				return
			}
		}
		if fail != nil {
			yield(like.Fact{}, fail)
		}
	}
}

func TestExportWritesAllOrNothing(t *testing.T) {
	broken := errors.New("the disk is gone")
	stored := func(fail error) io.Reader {
		r := Lines(facts(fail))
		t.Cleanup(func() { r.Close() })
		return r
	}
	text := func(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }
	for _, tc := range []struct {
		name string
		in   func() io.Reader
		fail error
	}{
		{"whole", text(twoLines), nil},
		{"facts", func() io.Reader { return stored(nil) }, nil},
		{"byte by byte", func() io.Reader { return iotest.OneByteReader(stored(nil)) }, nil},
		{"failing facts", func() io.Reader { return stored(broken) }, broken},
		{"failing source", func() io.Reader { return io.MultiReader(strings.NewReader(twoLines), iotest.ErrReader(broken)) }, broken},
		{"cut within a line", text(twoLines[:len(twoLines)-5]), io.ErrUnexpectedEOF},
	} {
		for _, name := range []string{"likes.ndjson", "likes.ndjson.gz", "-"} {
			t.Run(tc.name+" "+name, func(t *testing.T) { checkExport(t, tc.in(), name, tc.fail) })
		}
	}
}

func checkExport(t *testing.T, in io.Reader, name string, fail error) {
	t.Helper()
	var stdout bytes.Buffer
	dir := t.TempDir()
	output := name
	if name != "-" {
		output = filepath.Join(dir, name)
		write(t, output, "what was there before")
	}
	lines, err := Export(in, output, &stdout)
	if fail != nil {
		if !errors.Is(err, fail) {
			t.Errorf("error %v, want %v", err, fail)
		}
		if files, _ := os.ReadDir(dir); name != "-" && len(files) != 1 {
			t.Errorf("files left behind: %v", files)
		}
		if text, _ := os.ReadFile(output); name != "-" && string(text) != "what was there before" {
			t.Error("a failed export replaced the file")
		}
		return
	}
	got := stdout.String()
	if name != "-" {
		got = readAll(t, output)
	}
	if err != nil || lines != 2 || got != twoLines {
		t.Errorf("%d lines, error %v:\n%s", lines, err, got)
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestExportReplacesOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	for _, output := range []string{dir, os.DevNull} {
		if _, err := Export(strings.NewReader(twoLines), output, io.Discard); !errors.Is(err, like.ErrInvalid) {
			t.Errorf("%s: error %v", output, err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("files left behind: %v", files)
	}
}

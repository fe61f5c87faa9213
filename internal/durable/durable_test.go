package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func TestFiles(t *testing.T) {
	broken := errors.New("the disk is gone")
	half := func(w io.Writer) error { return errors.Join(text("hal")(w), broken) }
	for _, tt := range []struct {
		name   string
		put    func(string, func(io.Writer) error) error
		before string // "" = there is no file
		write  func(io.Writer) error
		after  string
		err    error
	}{
		{"write a new one", WriteFile, "", text("new"), "new", nil},
		{"write over", WriteFile, "old", text("new"), "new", nil},
		{"write half", WriteFile, "old", half, "old", broken},
		{"create", CreateFile, "", text("new"), "new", nil},
		{"create over", CreateFile, "old", text("new"), "old", fs.ErrExist},
		{"create half", CreateFile, "", half, "", broken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			if tt.before != "" {
				if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := tt.put(path, tt.write); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := os.ReadFile(path)
			if files := min(1, len(tt.after)); string(got) != tt.after || len(entries) != files {
				t.Errorf("%q in %d files, want %q in %d", got, len(entries), tt.after, files)
			}
		})
	}
	if err := SyncDir(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

package pebble

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"likewise/internal/like"
)

// BenchmarkOpen opens a store of a million likes on a real disk, with as much in the log
// as there was when its process ended.
func BenchmarkOpen(b *testing.B) {
	cfg := DefaultConfig()
	cfg.Dir = filepath.Join(b.TempDir(), "filled")
	fillStore(b, cfg, 1_000_000)
	for b.Loop() {
		b.StopTimer()
		opened := cfg
		opened.Dir = filepath.Join(b.TempDir(), "opened")
		if err := os.CopyFS(opened.Dir, os.DirFS(cfg.Dir)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		l, err := Open(opened)
		if err == nil {
			err = l.Ready(b.Context())
		}
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(opened.Dir); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// fillStore likes n times: a thousand users like the same items.
func fillStore(b *testing.B, cfg Config, n int) {
	b.Helper()
	l, err := Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	cmds := make([]like.Command, 1000)
	for item := range n / len(cmds) {
		for user := range cmds {
			cmds[user] = like.Command{
				Item: like.Item{Collection: "posts", ID: strconv.Itoa(item)},
				User: like.User("user-" + strconv.Itoa(user)),
				Op:   like.OpLike,
			}
		}
		if _, err := l.ApplyMany(b.Context(), cmds); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

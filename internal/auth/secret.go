package auth

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"likewise/internal/durable"
	"likewise/internal/like"
)

const maxSecretBytes = 4 << 10

// LoadSecret reads an HS256 secret that a person or a secret manager put there:
// the bytes of the file without the line breaks at its end, at least
// [MinSecretBytes] of them. Who may read the file is the owner's choice (secret
// managers mount such files for a group); a file that everybody may write is
// refused. Errors are [like.ErrInvalid] and never show the content.
func LoadSecret(path string) ([]byte, error) { return loadSecret(path, 0o002) }

// LoadOrCreateKey reads the service's own HS256 key, in the format of [LoadSecret].
// Where there is none it makes one of 32 random bytes, written as hexadecimal
// text, durable on return and complete for every other process from its first
// moment: of two that start together, both use the same key. The file is for its
// owner only; one that was opened to others is refused.
func LoadOrCreateKey(path string) ([]byte, error) {
	key, err := loadSecret(path, 0o077)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := createKey(path); err != nil {
		return nil, fmt.Errorf("create token key: %w", err)
	}
	return loadSecret(path, 0o077)
}

func loadSecret(path string, forbidden fs.FileMode) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: token secret: %w", like.ErrInvalid, err)
	}
	mode := info.Mode().Perm()
	// Windows has no such bits; what Go shows there says nothing about access.
	if mode&forbidden != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%w: token secret %s is open to others (mode %04o): run chmod 600 on it",
			like.ErrInvalid, path, mode)
	}
	b, err := readFile(path, maxSecretBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: token secret %s: %w", like.ErrInvalid, path, err)
	}
	b = bytes.TrimRight(b, "\r\n")
	if len(b) < MinSecretBytes {
		return nil, fmt.Errorf("%w: token secret %s has %d bytes, needs at least %d",
			like.ErrInvalid, path, len(b), MinSecretBytes)
	}
	return b, nil
}

// createKey makes the file. When another process was first, its key stays.
func createKey(path string) error {
	secret := make([]byte, MinSecretBytes)
	rand.Read(secret) // never fails: it ends the process instead
	err := durable.CreateFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, hex.EncodeToString(secret)+"\n")
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		return durable.SyncDir(filepath.Dir(path))
	}
	return err
}

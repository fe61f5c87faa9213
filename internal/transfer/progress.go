package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// progress says how far an import got. Everything up to Lines was acknowledged or
// reported as bad, and Digest identifies it.
type progress struct {
	Digest string `json:"digest"`
	Summary
}

// Summary counts the lines of an import.
type Summary struct {
	Lines    int64 `json:"lines"`    // read, without blank ones also counted as lines
	Accepted int64 `json:"accepted"` // acknowledged, new or there already
	Bad      int64 `json:"bad"`      // kept out and reported
}

// loadProgress returns false when there is no progress file.
func loadProgress(path string) (p progress, found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return p, false, fmt.Errorf("progress file %s: %w; --restart begins anew", path, err)
	}
	return p, true, nil
}

func (p progress) save(path string) error {
	return writeFile(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(p) })
}

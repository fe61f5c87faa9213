package transfer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"likewise/internal/like"
)

var errLongLine = fmt.Errorf("%w: the line is longer than %d bytes", like.ErrInvalid, maxLineBytes)

// lineReader yields lines and keeps a digest of everything before the next one.
type lineReader struct {
	in     *bufio.Reader
	digest hash.Hash
	lines  int64 // read so far
}

// newLineReader reads plain or gzipped lines, whatever the name says.
func newLineReader(r io.Reader) (*lineReader, error) {
	in := bufio.NewReaderSize(r, maxLineBytes)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		in = bufio.NewReaderSize(z, maxLineBytes)
	}
	return &lineReader{in: in, digest: sha256.New()}, nil
}

// next returns the next line without its line break; it is valid until the next
// call. A line that is too long is skipped and reported as errLongLine. The end is
// io.EOF.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	l.digest.Write(line)
	if len(line) == 0 && err != nil {
		return nil, l.failure(err)
	}
	l.lines++
	if err == nil || errors.Is(err, io.EOF) {
		return bytes.TrimRight(line, "\r\n"), nil
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.in.ReadSlice('\n')
		l.digest.Write(line)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, l.failure(err)
	}
	return nil, errLongLine
}

func (l *lineReader) failure(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return fmt.Errorf("read behind line %d: %w", l.lines, err)
}

// sum identifies the lines read so far.
func (l *lineReader) sum() string { return hex.EncodeToString(l.digest.Sum(nil)) }

// skip passes over lines.
func (l *lineReader) skip(lines int64) error {
	for l.lines < lines {
		if _, err := l.next(); err != nil && !errors.Is(err, errLongLine) {
			return err
		}
	}
	return nil
}

package transfer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"likewise/internal/like"
)

// Export copies lines from in to output: FILE, FILE.gz, or "-" for stdout. A file
// gets its name only when everything is in it and on disk. It returns the number
// of lines; an input that ends within a line is an error.
func Export(in io.Reader, output string, stdout io.Writer) (lines int64, err error) {
	if output == "-" {
		return copyLines(stdout, in)
	}
	err = writeFile(output, func(w io.Writer) (err error) {
		buffered := bufio.NewWriterSize(w, 1<<20)
		if !strings.HasSuffix(output, ".gz") {
			lines, err = copyLines(buffered, in)
			return errors.Join(err, buffered.Flush())
		}
		z := gzip.NewWriter(buffered)
		lines, err = copyLines(z, in)
		return errors.Join(err, z.Close(), buffered.Flush())
	})
	return lines, err
}

func copyLines(w io.Writer, r io.Reader) (lines int64, err error) {
	count := lineCounter{ended: true}
	if _, err := io.Copy(w, io.TeeReader(r, &count)); err != nil {
		return count.lines, fmt.Errorf("after %d likes: %w", count.lines, err)
	}
	if !count.ended {
		return count.lines, fmt.Errorf("after %d likes: %w", count.lines, io.ErrUnexpectedEOF)
	}
	return count.lines, nil
}

type lineCounter struct {
	lines int64
	ended bool // whether the last byte was a line break
}

func (c *lineCounter) Write(b []byte) (int, error) {
	if len(b) > 0 {
		c.lines += int64(bytes.Count(b, []byte{'\n'}))
		c.ended = b[len(b)-1] == '\n'
	}
	return len(b), nil
}

// Lines reads facts as lines, for an export from a ledger in this process. The
// caller closes it.
func Lines(facts iter.Seq2[like.Fact, error]) io.ReadCloser {
	next, stop := iter.Pull2(facts)
	return &factReader{next: next, stop: stop}
}

type factReader struct {
	next func() (like.Fact, error, bool)
	stop func()
	buf  []byte
	rest []byte // of buf
	err  error
}

func (r *factReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.refill()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	if n == 0 && len(p) > 0 {
		return 0, r.err
	}
	return n, nil
}

func (r *factReader) refill() {
	r.buf = r.buf[:0]
	for r.err == nil && len(r.buf) < 16<<10 {
		fact, err, ok := r.next()
		switch {
		case !ok:
			r.err = io.EOF
		case err != nil:
			r.err = err
		default:
			r.buf = AppendLine(r.buf, fact)
		}
	}
	r.rest = r.buf
}

func (r *factReader) Close() error {
	r.stop()
	return nil
}

package scenarios

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"likewise/test/harness"
)

// survivesKill is B15: a 200 means that the like is on the disk.
func survivesKill(w *world) {
	w.needNodes()
	p := w.post(1)
	for n := range size(w, 5, 50) {
		u := w.user(n + 1)
		w.like(u, p)
		<-time.After(time.Duration(1+rand.IntN(20)) * time.Millisecond)
		w.crash()
		w.wantMine(u, p, true)
		w.wantCount(p, int64(n+1))
		if got := w.likers(p, 100); len(got) != n+1 || got[0] != u {
			w.Fatalf("after kill %d the liker list is %q", n+1, got)
		}
	}
}

// syncBeforeAnswer is the second half of B15: between the arrival of a like and
// its answer something is written, and every file written is synced.
func syncBeforeAnswer(w *world) {
	w.needFiles()
	tracer, err := exec.LookPath("strace")
	if err != nil {
		harness.NotOffered(w.T, "no strace here")
	}
	node := w.target.Nodes[0]
	w.like(w.user(1), w.post(1)) // whatever happens only once is done
	out := filepath.Join(w.TempDir(), "trace")
	cmd := exec.Command(tracer, "-f", "-y", "-s", "96", "-e", "trace=read,write,pwrite64,pwritev,fsync,fdatasync",
		"-o", out, "-p", strconv.Itoa(node.PID()))
	w.must(cmd.Start())
	// Likes are sent until one is in the trace as a whole, because nothing says
	// when the tracer has attached itself to all threads.
	var whole []string
	for k := 2; k < 3000 && whole == nil; k++ {
		w.like(w.user(k), w.post(k))
		<-time.After(10 * time.Millisecond)
		trace, _ := os.ReadFile(out)
		whole = likeInTrace(string(trace), w.post(k).Path("like"))
	}
	w.must(cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // ends by the signal
	if whole == nil {
		harness.NotOffered(w.T, "strace saw no request; tracing may be forbidden here")
	}
	if err := synced(whole, node.DataDir); err != nil {
		w.Fatalf("%v:\n%s", err, strings.Join(whole, ""))
	}
}

// likeInTrace returns the lines from the arrival of a PUT to its answer, nil when
// not both are there.
func likeInTrace(trace, path string) []string {
	var between []string
	for line := range strings.Lines(trace) {
		switch {
		case strings.Contains(line, "PUT "+path):
			between = []string{line}
		case between != nil:
			if between = append(between, line); strings.Contains(line, "HTTP/1.1 200") {
				return between
			}
		}
	}
	return nil
}

var (
	writeCall = regexp.MustCompile(`^\d+ +p?write(?:v|64)?\(\d+<([^>]+)>`)
	syncCall  = regexp.MustCompile(`^(\d+) +f(?:data)?sync\(\d+<([^>]+)>`)
	syncEnd   = regexp.MustCompile(`^(\d+) +(?:f(?:data)?sync\(.*\)|<\.\.\. f(?:data)?sync resumed>.*)\s+= 0`)
)

// synced reports what was written below dir and not synced afterwards.
func synced(trace []string, dir string) error {
	written, syncing := map[string]bool{}, map[string]string{} // by file; by thread
	for _, line := range trace {
		if m := writeCall.FindStringSubmatch(line); m != nil && strings.HasPrefix(m[1], dir) {
			written[m[1]] = true
		}
		if m := syncCall.FindStringSubmatch(line); m != nil {
			syncing[m[1]] = m[2]
		}
		if m := syncEnd.FindStringSubmatch(line); m != nil && written[syncing[m[1]]] {
			written[syncing[m[1]]] = false
		}
	}
	if len(written) == 0 {
		return errors.New("nothing was written before the answer")
	}
	for file, unsynced := range written {
		if unsynced {
			return fmt.Errorf("%s was written and not synced before the answer", file)
		}
	}
	return nil
}

// onSmallDisk puts the data on a file system of 64 MiB.
func onSmallDisk(t *testing.T) Options {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", dir).CombinedOutput(); err != nil {
		harness.NotOffered(t, "cannot mount a small file system (needs root on Linux): %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("unmount: %s", out)
		}
	})
	return Options{DataDir: filepath.Join(dir, "data")}
}

// fullDisk is B16: a full disk refuses likes and breaks nothing.
func fullDisk(w *world) {
	w.needFiles()
	w.faulty = true
	filler := filepath.Join(filepath.Dir(w.target.Nodes[0].DataDir), "filler")
	p, fresh := w.post(1), 0
	works := func() bool {
		fresh++
		return w.set(w.user(fresh), p, true) == nil
	}
	fillUp := func() {
		for works() && grow(w, filler, 1<<20) {
		}
		for grow(w, filler, 64<<10) { // the last bytes
		}
		for range 20 {
			fresh++
			err := w.set(w.user(fresh), p, true)
			problem, ok := errors.AsType[*harness.Problem](err)
			if !ok || problem.Status != 503 || problem.Code == "" || problem.RetryAfter() < 1 {
				w.Fatalf("a like on a full disk: %v, want a 503 as a problem document with Retry-After", err)
			}
			w.counts(w.user(1), p)
			w.likers(p, 100)
		}
	}
	fillUp()
	w.must(os.Remove(filler))
	w.must(harness.Poll(w.ctx, 50*time.Millisecond, func() (bool, error) { return works(), nil }))
	fillUp()
	w.kill()
	w.must(os.Remove(filler))
	w.start()
	w.settled()
	w.like(w.user(fresh+1), p)
}

// grow appends to a file and reports whether there was room.
func grow(w *world, path string, size int) bool {
	w.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	_, err = f.Write(make([]byte, size))
	return err == nil
}

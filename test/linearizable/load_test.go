package linearizable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"likewise/internal/like"
	"likewise/test/harness"
	"likewise/test/servers"
)

// load records and checks histories, one for each user and several at one time, until
// there are enough of them and stop was called.
type load struct {
	pick   pick
	seed   uint64
	enough int64
	ahead  bool // reads may show commands that are under way, and devices wait for answers

	begun, checked, unanswered atomic.Int64
	failed                     atomic.Bool
	finish                     atomic.Bool
	work                       sync.WaitGroup
}

// start starts the load, which the caller ends with stop.
func (l *load) start(t *testing.T) {
	for range harness.Size(8, 16) {
		l.work.Go(func() {
			for {
				n := l.begun.Add(1)
				if l.failed.Load() || t.Context().Err() != nil || n > l.enough && l.finish.Load() {
					return
				}
				l.one(t, n)
			}
		})
	}
}

// stop waits until enough histories are checked, and says how many there were.
func (l *load) stop(t *testing.T) {
	l.finish.Store(true)
	l.work.Wait()
	t.Logf("%d histories of %d operations, %d commands unanswered", l.checked.Load(), clients*operations, l.unanswered.Load())
	if l.checked.Load() < l.enough && !t.Failed() {
		t.Errorf("%d histories were checked, want %d", l.checked.Load(), l.enough)
	}
}

// one records and checks the n-th history.
func (l *load) one(t *testing.T, n int64) {
	r := recorder{user: userOf(n), items: items, pick: l.pick, patient: l.ahead}
	history := r.record(t.Context(), l.seed+uint64(n))
	for _, e := range history {
		if e.op != 0 && !e.answered {
			l.unanswered.Add(1)
		}
	}
	v, err := judge(history, l.ahead)
	switch {
	case err != nil:
		t.Error(err)
	case v.result != porcupine.Ok:
		l.failed.Store(true)
		picture := filepath.Join(t.ArtifactDir(), fmt.Sprintf("history-%d.html", n))
		if err := v.draw(picture); err != nil {
			t.Error(err)
		}
		t.Errorf("history %d, drawn in %s: %v", n, picture, v)
	default:
		l.checked.Add(1)
	}
}

func userOf(n int64) like.User { return like.User(fmt.Sprint("user-", n)) }

// seedOf is that of an earlier run, or a new one.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64() >> 1
	if text := os.Getenv("LIKEWISE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("LIKEWISE_SEED: %v", err)
		}
	}
	t.Logf("LIKEWISE_SEED=%d", seed)
	return seed
}

// fault is one thing that breaks.
type fault struct {
	name string
	does func() int // returns how much it broke
}

// breakAll lets every fault happen some times, in any order, and fails the test
// unless each of them broke something.
func breakAll(t *testing.T, rng *rand.Rand, faults []fault, times int) {
	t.Helper()
	broke := map[string]int{}
	for range times {
		for _, k := range rng.Perm(len(faults)) {
			broke[faults[k].name] += faults[k].does()
			rest(t.Context(), 30*time.Millisecond)
		}
	}
	t.Logf("broken: %v", broke)
	for _, f := range faults {
		if broke[f.name] == 0 {
			t.Errorf("%s broke nothing", f.name)
		}
	}
}

// breakCommits lets some COMMITs on a line be lost, and the answers to more: so many in
// a quick run that few histories are enough to notice what is applied twice.
func breakCommits(line *servers.TCPProxy) {
	of := harness.Size(32, 50)
	line.OnCommit(func() servers.CommitFault {
		switch rand.IntN(of) {
		case 0:
			return servers.CommitLost
		case 1, 2, 3:
			return servers.AnswerLost
		}
		return servers.NoFault
	})
}

// commitsBroke fails the test unless commits were lost in both ways.
func commitsBroke(t *testing.T, lines []*servers.TCPProxy) {
	t.Helper()
	commits, answers := 0, 0
	for _, line := range lines {
		commits += line.Fired(servers.CommitLost)
		answers += line.Fired(servers.AnswerLost)
	}
	t.Logf("lost: %d commits, answers to %d", commits, answers)
	if commits == 0 || answers == 0 {
		t.Error("no commit or no answer to one was lost")
	}
}

// cut cuts a line as soon as there are connections on it, and says how many.
func cut(t *testing.T, line *servers.TCPProxy) (connections int) {
	t.Helper()
	eventually(t, "a line is in use", func() error {
		if connections = line.Cut(); connections > 0 {
			return nil
		}
		heal(t, line)
		return errors.New("no connection")
	})
	return connections
}

// sever ends the connections to a database as soon as there are some: after a stop
// they take a while to come back.
func sever(t *testing.T, pg *servers.PostgresServer) (connections int) {
	t.Helper()
	eventually(t, "a database is in use", func() error {
		if connections = pg.Sever(t); connections == 0 {
			return errors.New("no connection")
		}
		return nil
	})
	return connections
}

func heal(t *testing.T, line *servers.TCPProxy) {
	t.Helper()
	if err := line.Heal(); err != nil {
		t.Fatal(err)
	}
}

package live

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"likewise/internal/like"
)

// The benchmarks run the server in a process of its own, so that its memory is not
// that of the clients and each has enough descriptors. It is this test binary.
const asServer = "LIKEWISE_LIVE_BENCH_SERVER"

func TestBenchmarkServer(t *testing.T) {
	if os.Getenv(asServer) == "" {
		t.Skip("this is the server of the benchmarks")
	}
	raiseFiles()
	s := newSource()
	s.set("1", 1)
	cfg := testConfig()
	cfg.Interval, cfg.Heartbeat, cfg.Recheck = time.Hour, time.Hour, 0 // flushes come when they are asked for
	h, stop := startHub(t, cfg, s)
	defer stop()
	mux := http.NewServeMux()
	mux.Handle("/", handler(h))
	mux.HandleFunc("PUT /like", func(http.ResponseWriter, *http.Request) { s.set("1", 2) })
	server := httptest.NewServer(mux)
	defer server.Close()
	fmt.Println("address", server.Listener.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "memory":
			fmt.Println("memory", rss(), heap(), runtime.NumGoroutine())
		case "flush":
			h.observe([]like.Total{s.set("1", 124)})
			start := time.Now()
			h.flush()
			fmt.Println("flush", time.Since(start).Nanoseconds())
		case "bare":
			fmt.Println("bare", bareLoop(h).Nanoseconds())
		case "stuck":
			fmt.Println("stuck", stuck(h))
		case "clients":
			fmt.Println("clients", h.open())
		}
	}
}

// bareLoop writes one event to every client with nothing around it.
func bareLoop(h *Hub) time.Duration {
	h.mu.Lock()
	var fds []int
	for c := range h.clients {
		fds = append(fds, int(c.sink.(*bare).key.fd))
	}
	h.mu.Unlock()
	event := h.appendEvent(nil, 1<<63, h.seq, [][]byte{appendTotal(nil, like.Total{Item: post("1"), Count: 124, Version: 87})})
	start := time.Now()
	for _, fd := range fds {
		_, _ = syscall.Write(fd, event)
	}
	return time.Since(start)
}

// stuck counts the clients that hold back the rest of a frame.
func stuck(h *Hub) (n int) {
	h.mu.Lock()
	all := h.everyone()
	h.mu.Unlock()
	for _, c := range all {
		s := c.sink.(*bare)
		s.mu.Lock()
		n += min(len(s.rest), 1)
		s.mu.Unlock()
	}
	return n
}

// rss is the resident memory of this process in bytes.
func rss() int64 {
	debug.FreeOSMemory()
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kilobytes, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return kilobytes << 10
}

// heap is the memory that the runtime has in use for objects and stacks.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// raiseFiles allows this process as many descriptors as it may have.
func raiseFiles() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
}

// remote is the server's process.
type remote struct {
	*testing.B
	in   io.Writer
	out  *bufio.Scanner
	addr string
}

func startRemote(b *testing.B) *remote {
	b.Helper()
	raiseFiles()
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestBenchmarkServer$", "-test.v=false")
	cmd.Env = append(os.Environ(), asServer+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	r := &remote{B: b, in: in, out: bufio.NewScanner(out)}
	r.addr = r.answer("address")[0]
	return r
}

// ask sends a command and returns the numbers of its answer.
func (r *remote) ask(command string) (numbers []float64) {
	r.Helper()
	fmt.Fprintln(r.in, command)
	for _, field := range r.answer(command) {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			r.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

func (r *remote) answer(to string) []string {
	r.Helper()
	for r.out.Scan() {
		if fields := strings.Fields(r.out.Text()); len(fields) > 1 && fields[0] == to {
			return fields[1:]
		}
	}
	r.Fatalf("no answer to %s: %v", to, r.out.Err())
	return nil
}

// connect opens streams and waits until each has its snapshot.
func (r *remote) connect(n int, pause time.Duration) []net.Conn {
	r.Helper()
	conns := make([]net.Conn, n)
	var wg sync.WaitGroup
	room := make(chan struct{}, 64)
	start := time.Now()
	for i := range conns {
		time.Sleep(time.Until(start.Add(time.Duration(i) * pause)))
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			c, err := net.Dial("tcp", r.addr)
			if err != nil {
				r.Error(err)
				return
			}
			conns[i] = c
			fmt.Fprint(c, "GET /stream?posts=1 HTTP/1.1\r\nHost: x\r\n\r\n")
			var got []byte
			for b := make([]byte, 1024); !strings.Contains(string(got), "}]}\n\n"); {
				n, err := c.Read(b)
				if got = append(got, b[:n]...); err != nil {
					r.Errorf("%v after %q", err, got)
					return
				}
			}
		})
	}
	wg.Wait()
	return conns
}

// BenchmarkStuckReaders compares a flush to everybody with one to everybody and
// one in a hundred who does not read.
func BenchmarkStuckReaders(b *testing.B) {
	r := startRemote(b)
	n := viewers()
	var silent []net.Conn
	for range n / 100 {
		c := dial(b, r.addr, 1)
		request(b, c, newPage(), "1")
		silent = append(silent, c)
	}
	for int(r.ask("stuck")[0]) < len(silent) {
		r.ask("flush")
	}
	conns := r.connect(n, 0)
	defer closeAll(conns)
	var with, without []float64
	for b.Loop() {
		with = append(with, r.ask("flush")[0])
	}
	closeAll(silent)
	eventually(b, "they are gone", func() bool { return int(r.ask("clients")[0]) == n })
	for range with {
		without = append(without, r.ask("flush")[0])
	}
	// The fastest of each: what else the machine does is not the clients' doing.
	b.ReportMetric(slices.Min(with)/1e6, "with-ms")
	b.ReportMetric(slices.Min(without)/1e6, "without-ms")
	b.ReportMetric((slices.Min(with)-slices.Min(without))/1e6, "delay-ms")
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		if c != nil {
			_ = c.Close()
		}
	}
}

// viewers is how many streams a benchmark has: fewer with -short.
func viewers() int {
	if testing.Short() {
		return 2000
	}
	return 10_000
}

// BenchmarkIdleStreams measures the memory of a stream on which nothing happens.
func BenchmarkIdleStreams(b *testing.B) {
	n := viewers()
	for b.Loop() {
		r := startRemote(b)
		closeAll(r.connect(200, 0)) // what is allocated once
		eventually(b, "they are gone", func() bool { return r.ask("clients")[0] == 0 })
		before := r.ask("memory")
		conns := r.connect(n, 0)
		after := r.ask("memory")
		b.ReportMetric((after[0]-before[0])/float64(n), "rss-B/stream")
		b.ReportMetric((after[1]-before[1])/float64(n), "heap+stack-B/stream")
		b.ReportMetric(after[2]-before[2], "goroutines")
		closeAll(conns)
	}
}

// BenchmarkFanOut compares one change told to everybody with a loop of writes.
func BenchmarkFanOut(b *testing.B) {
	r := startRemote(b)
	conns := r.connect(viewers(), 0)
	defer closeAll(conns)
	var flush, loop []float64
	for b.Loop() {
		flush = append(flush, r.ask("flush")[0])
		loop = append(loop, r.ask("bare")[0])
	}
	slices.Sort(flush)
	slices.Sort(loop)
	b.ReportMetric(flush[len(flush)/2]/1e6, "flush-ms")
	b.ReportMetric(loop[len(loop)/2]/1e6, "loop-ms")
	b.ReportMetric(flush[len(flush)/2]/loop[len(loop)/2], "flush/loop")
}

// BenchmarkReconnectStorm drops all streams, which return at 1,000 a second, and
// measures writes meanwhile.
func BenchmarkReconnectStorm(b *testing.B) {
	for _, n := range []int{2000, viewers()} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			r := startRemote(b)
			conns := r.connect(n, 0)
			for b.Loop() {
				quiet := r.puts(time.After(3 * time.Second))
				over := make(chan time.Time)
				go func() {
					defer close(over)
					closeAll(conns)
					conns = r.connect(n, time.Millisecond)
				}()
				storm := r.puts(over)
				b.ReportMetric(percentile(quiet, 50), "quiet-p50-ms")
				b.ReportMetric(percentile(quiet, 99), "quiet-p99-ms")
				b.ReportMetric(percentile(storm, 99), "storm-p99-ms")
				b.ReportMetric(percentile(storm, 50), "storm-p50-ms")
				b.ReportMetric(percentile(storm, 99)/percentile(quiet, 99), "storm/quiet")
			}
			closeAll(conns)
		})
	}
}

// puts writes 200 times a second until it is over, and returns the latencies in
// milliseconds, from the moment each was due.
func (r *remote) puts(over <-chan time.Time) (took []float64) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	var mu sync.Mutex
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			wg.Wait()
			return took
		case due := <-tick.C:
			wg.Go(func() {
				req, err := http.NewRequestWithContext(r.Context(), http.MethodPut, "http://"+r.addr+"/like", nil)
				if err != nil {
					r.Error(err)
					return
				}
				res, err := client.Do(req)
				if err != nil {
					r.Error(err)
					return
				}
				_ = res.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(due).Seconds()*1000)
			})
		}
	}
}

func percentile(took []float64, p int) float64 {
	slices.Sort(took)
	return took[min(len(took)-1, len(took)*p/100)]
}

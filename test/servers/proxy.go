package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TCPProxy forwards connections to a server, and breaks them when told to. Its
// methods are safe for concurrent use.
type TCPProxy struct {
	target  *url.URL
	address string
	delay   atomic.Int64 // nanoseconds
	commits commitFaults

	done     context.Context // ends every wait
	finish   context.CancelFunc
	accepts  sync.WaitGroup
	links    sync.WaitGroup
	mu       sync.Mutex
	listener net.Listener // nil while cut
	open     map[*link]bool
}

// link is one connection of a client and that to the server.
type link struct {
	client net.Conn
	server net.Conn

	answerLost atomic.Bool // the next answer to a COMMIT is to be lost
}

// Proxy starts a proxy in front of the server of a URL for the test, and stops it
// when the test ends. The connections of a PostgreSQL URL may also be broken at
// COMMIT; they must not use TLS.
func Proxy(tb testing.TB, serverURL string) *TCPProxy {
	tb.Helper()
	p, err := newProxy(serverURL)
	check(tb, err)
	tb.Cleanup(p.close)
	return p
}

func newProxy(serverURL string) (*TCPProxy, error) {
	target, err := url.Parse(serverURL)
	if err == nil && target.Port() == "" {
		err = errors.New("the URL names no port")
	}
	if err != nil {
		return nil, fmt.Errorf("start a proxy for %s: %w", serverURL, err)
	}
	p := &TCPProxy{target: target, open: map[*link]bool{}}
	p.done, p.finish = context.WithCancel(context.Background())
	return p, onFreePort(0, func(port int) error {
		p.address = addressOf(port)
		return p.Heal()
	})
}

// Address returns host:port of the proxy.
func (p *TCPProxy) Address() string { return p.address }

// URL returns the URL that the proxy was started with, through it.
func (p *TCPProxy) URL() string {
	through := *p.target
	through.Host = p.address
	return through.String()
}

// Cut resets all connections, refuses new ones, and returns how many were reset.
func (p *TCPProxy) Cut() int {
	p.mu.Lock()
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	n := len(p.open)
	for k := range p.open {
		k.reset()
	}
	p.mu.Unlock()
	p.accepts.Wait() // nothing is accepted from now on
	return n
}

// Heal lets new connections in again.
func (p *TCPProxy) Heal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	p.listener = l
	p.accepts.Go(func() { p.accept(l) })
	return nil
}

// Delay makes everything take that much longer, in each direction.
func (p *TCPProxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

func (p *TCPProxy) close() {
	p.finish()
	p.Cut()
	p.links.Wait()
}

func (p *TCPProxy) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		k := &link{client: conn}
		p.mu.Lock()
		if p.listener == l {
			p.open[k] = true
			p.links.Go(func() { p.serve(k) })
		} else {
			k.reset()
		}
		p.mu.Unlock()
	}
}

// serve forwards in both directions until either end is gone.
func (p *TCPProxy) serve(k *link) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, k)
		k.close()
	}()
	dial, cancel := context.WithTimeout(p.done, 5*time.Second)
	defer cancel()
	server, err := new(net.Dialer).DialContext(dial, "tcp", p.target.Host)
	if err != nil || !p.attach(k, server) {
		return
	}
	up, down := forwardAny, forwardAny
	if p.target.Scheme == "postgres" || p.target.Scheme == "postgresql" {
		up, down = p.commits.forward(k)
	}
	var directions sync.WaitGroup
	directions.Go(func() { p.pump(k, server, k.client, up) })
	directions.Go(func() { p.pump(k, k.client, server, down) })
	directions.Wait()
}

// attach gives a link its other end, unless it was reset meanwhile.
func (p *TCPProxy) attach(k *link, server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k.server = server
	if p.listener == nil {
		k.reset()
		return false
	}
	return true
}

// take reads what can be forwarded in one piece.
type take func(*bufio.Reader) ([]byte, error)

// errLost says that what was read must not be forwarded, and the link break.
var errLost = errors.New("lost on purpose")

func forwardAny(r *bufio.Reader) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	b, err := r.Peek(r.Buffered())
	if err != nil {
		return nil, err
	}
	_, err = r.Discard(len(b))
	return b, err // valid until the next read
}

// pump forwards one direction, and closes both ends when it is over.
func (p *TCPProxy) pump(k *link, dst, src net.Conn, next take) {
	r, w := bufio.NewReaderSize(src, 64<<10), bufio.NewWriterSize(dst, 64<<10)
	for {
		b, err := next(r)
		if errors.Is(err, errLost) {
			k.reset()
			return
		}
		if err == nil {
			_, err = w.Write(b)
		}
		if err == nil && r.Buffered() == 0 {
			p.wait()
			err = w.Flush()
		}
		if err != nil {
			w.Flush() // what came before the end
			k.close()
			return
		}
	}
}

func (p *TCPProxy) wait() {
	d := time.Duration(p.delay.Load())
	if d == 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-p.done.Done():
	}
}

// close ends both connections in order.
func (k *link) close() {
	k.client.Close()
	if k.server != nil {
		k.server.Close()
	}
}

// reset breaks both connections, so that what is under way is lost.
func (k *link) reset() {
	for _, c := range []net.Conn{k.client, k.server} {
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0)
			tcp.Close()
		}
	}
}

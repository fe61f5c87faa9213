package limit

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"likewise/internal/like"
)

// ConnConfig bounds the open connections of a listener.
type ConnConfig struct {
	// Total bounds all connections, PerAddress those of one [Key]. Zero is no bound.
	Total      int
	PerAddress int
	// Trusted are proxies, which hold connections for many: PerAddress does not
	// apply to them.
	Trusted []netip.Prefix
}

// DefaultConn returns bounds that also suit a server behind an unconfigured proxy:
// 20,000 connections, however many addresses they come from.
func DefaultConn() ConnConfig { return ConnConfig{Total: 20_000} }

// Validate reports, as [like.ErrInvalid], why the settings cannot work.
func (c ConnConfig) Validate() error {
	if c.Total < 0 || c.PerAddress < 0 {
		return fmt.Errorf("%w: connection limit is negative", like.ErrInvalid)
	}
	return nil
}

// Listener is a [net.Listener] that closes connections above its bounds as soon
// as they are accepted, without a goroutine and without an answer. A connection
// counts until it is closed.
type Listener struct {
	net.Listener
	cfg ConnConfig

	mu      sync.Mutex
	open    int
	refused uint64
	perKey  map[string]int
}

// NewListener wraps l, which it owns from then on.
func NewListener(l net.Listener, cfg ConnConfig) *Listener {
	return &Listener{Listener: l, cfg: cfg, perKey: make(map[string]int)}
}

// Stats returns how many connections are open and how many were refused so far.
func (l *Listener) Stats() (open int, refused uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, l.refused
}

// Accept returns the next connection within the bounds.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		key, ok := l.admit(peerAddr(c.RemoteAddr().String()))
		if ok {
			return &conn{Conn: c, release: sync.OnceFunc(func() { l.release(key) })}, nil
		}
		c.Close()
	}
}

// admit counts a connection and returns the key it counts for, "" for none.
func (l *Listener) admit(addr netip.Addr) (key string, ok bool) {
	if l.cfg.PerAddress > 0 && !contains(l.cfg.Trusted, addr) {
		key = Key(addr)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.Total > 0 && l.open >= l.cfg.Total || key != "" && l.perKey[key] >= l.cfg.PerAddress {
		l.refused++
		return "", false
	}
	l.open++
	if key != "" {
		l.perKey[key]++
	}
	return key, true
}

func (l *Listener) release(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if key == "" {
		return
	}
	if l.perKey[key]--; l.perKey[key] == 0 {
		delete(l.perKey, key)
	}
}

type conn struct {
	net.Conn
	release func()
}

func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// SyscallConn lets the owner of a connection that was taken over from net/http
// poll it.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if system, ok := c.Conn.(syscall.Conn); ok {
		return system.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// CloseWrite lets net/http end its half first, so that the last answer on a
// connection is not lost to a reset.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

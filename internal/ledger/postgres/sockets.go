package postgres

import (
	"context"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// sockets are the open connections of a ledger. They are closed all at once when it
// ends: else whoever reads from a database that has gone silent, without a deadline,
// would hold up the end for as long as that takes.
type sockets struct {
	mu   sync.Mutex
	open map[*socket]struct{} // nil once they are cut
}

type socket struct {
	net.Conn
	all *sockets
}

func newSockets() *sockets { return &sockets{open: map[*socket]struct{}{}} }

// through returns a way to dial that notes what it opens.
func (s *sockets) through(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		one := &socket{Conn: conn, all: s}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open == nil {
			_ = conn.Close() // nothing was sent
			return nil, net.ErrClosed
		}
		s.open[one] = struct{}{}
		return one, nil
	}
}

func (s *socket) Close() error {
	s.all.mu.Lock()
	delete(s.all.open, s)
	s.all.mu.Unlock()
	return s.Conn.Close()
}

// cut closes every connection, and each one that is opened later.
func (s *sockets) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.open {
		_ = one.Conn.Close() // whoever uses it is told
	}
	s.open = nil
}

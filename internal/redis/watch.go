package redis

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/rueidis"
)

const (
	firstPause   = 100 * time.Millisecond // between attempts to reach Redis
	longestPause = 2 * time.Second
	repeatLog    = time.Minute // between lines of one kind
	probePause   = 100 * time.Millisecond
	probeTimeout = time.Second // to connect again
)

// watch connects, heals the breaker when what did not answer does so again, and
// disconnects.
func (c *Client) watch() {
	s := c.connect()
	if s == nil {
		return
	}
	defer s.close()
	c.redis.Store(s)
	close(c.connected)
	c.log.Info("connected to Redis", "cluster", s.cluster)
	var logged time.Time
	for {
		select {
		case <-c.closing.Done():
			return
		case <-c.breaker.tripped:
		}
		open := c.breaker.open()
		loud := open != 0 && time.Since(logged) > repeatLog
		if loud {
			logged = time.Now()
			c.log.Warn("Redis cannot be used; counts come from the ledger, and limits are those of this node", "parts", open.size())
		}
		for c.breaker.open() != 0 {
			if !sleep(c.closing, jitter(probePause)) {
				return
			}
			c.breaker.heal(c.probe(s))
		}
		if loud {
			c.log.Info("Redis can be used again")
		}
	}
}

// connect returns nil when the client is closed first.
func (c *Client) connect() *server {
	var logged time.Time
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		client, err := rueidis.NewClient(c.option)
		if err == nil {
			return &server{client, client.Mode() == rueidis.ClientModeCluster}
		}
		if time.Since(logged) > repeatLog {
			logged = time.Now()
			c.log.Warn("Redis cannot be reached; counts come from the ledger, and limits are those of this node", "error", err)
		}
		if !sleep(c.closing, jitter(pause)) {
			return nil
		}
	}
}

// probe returns which of the open segments answer as fast as a caller wants it.
func (c *Client) probe(s *server) (healed set) {
	open := c.breaker.open()
	ask := func(limit time.Duration) verdict {
		ctx, cancel := context.WithTimeout(c.closing, limit)
		defer cancel()
		var where []int
		var commands rueidis.Commands
		for i := range segments {
			if open.has(i) {
				where = append(where, i)
				// Of all writes one that a replica refuses, and a full server does not.
				commands = append(commands, s.B().Del().Key(c.key("probe:1", tags[i])).Build())
			}
		}
		return judge(s.DoMulti(ctx, commands...), where)
	}
	if connected := ask(probeTimeout); connected.unfit != 0 && !s.cluster {
		c.leaveServer(s)
		return 0
	}
	return open &^ ask(c.cfg.Timeout).lost
}

// leaveServer has a server end the connection, subscriptions included, so that the
// next one is made to where the name leads by then. A cluster tells where to go.
func (c *Client) leaveServer(s *server) {
	ctx, cancel := context.WithTimeout(c.closing, probeTimeout)
	defer cancel()
	s.Do(ctx, s.B().Arbitrary("QUIT").Build())
}

// jitter keeps nodes from doing the same at the same time.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// sleep waits and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

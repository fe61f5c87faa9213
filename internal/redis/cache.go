package redis

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"likewise/internal/like"
)

// Get returns the totals that are cached, in request order; known says which are.
// All are asked for in one round trip, to every node of a cluster that has some. It
// takes no longer than the timeout of a call; what cannot be read is not known.
func (c *Client) Get(ctx context.Context, items []like.Item) (totals []like.Total, known []bool) {
	totals, known = make([]like.Total, len(items)), make([]bool, len(items))
	s, open := c.reach()
	if s == nil {
		c.metrics.get.skipped.Inc()
		return totals, known
	}
	var asked set
	places, where := make([]int, 0, len(items)), make([]int, 0, len(items))
	commands := make(rueidis.Commands, 0, len(items))
	for i, item := range items {
		key := c.totalKey(item)
		if segment := s.segment(key); !open.has(segment) {
			asked.add(segment)
			places, where = append(places, i), append(where, segment)
			commands = append(commands, s.B().Get().Key(key).Build())
		}
	}
	if len(commands) == 0 {
		c.metrics.get.skipped.Inc()
		return totals, known
	}
	results, _ := do(ctx, c, &c.metrics.get, c.cfg.Timeout, asked, func(ctx context.Context) ([]rueidis.RedisResult, verdict) {
		results := s.DoMulti(ctx, commands...)
		return results, judge(results, where)
	})
	for k, result := range results {
		text, err := result.ToString()
		if err != nil {
			continue
		}
		i := places[k]
		if totals[i], known[i] = parseTotal(items[i], text); !known[i] {
			c.metrics.malformed.Inc()
		}
	}
	return totals, known
}

// Put offers totals that the ledger has just confirmed to the cache. It does not
// wait, and an older version changes nothing. The slice stays the caller's.
func (c *Client) Put(totals []like.Total) { c.offer(totals, false) }

// Publish offers totals that have just changed to the cache, and tells all nodes.
// All are cached, watched or not: what changes is what is read. It does not wait,
// and of one item the newest total is enough. They must be committed. The slice
// stays the caller's.
func (c *Client) Publish(totals []like.Total) { c.offer(totals, true) }

func (c *Client) offer(totals []like.Total, tell bool) {
	c.metrics.dropped.Add(float64(c.outbox.add(totals, tell)))
}

// write carries out what was offered. When the client is closed it goes on with what
// is there, but not for long.
func (c *Client) write() {
	for {
		select {
		case <-c.leaving.Done():
			for end := time.Now().Add(behind); time.Now().Before(end) && c.writeSome(); {
			}
			return
		case <-c.outbox.wake:
		}
		for c.leaving.Err() == nil && c.writeSome() {
		}
	}
}

// writeSome reports false when there is nothing more to write.
func (c *Client) writeSome() bool {
	batch := c.outbox.take()
	if len(batch) == 0 {
		return false
	}
	c.tell(c.store(batch))
	return true
}

// behind bounds a call that nobody waits for.
const behind = time.Second

// store sets totals that are newer than those in the cache, and returns the batch
// without those of which Redis said nothing. They may be there all the same.
func (c *Client) store(batch []offer) (answered []offer) {
	defer func() { c.metrics.dropped.Add(float64(len(batch) - len(answered))) }()
	s, open := c.reach()
	if s == nil {
		c.metrics.put.skipped.Inc()
		return nil
	}
	var asked set
	var where []int
	var runs []run
	var offers []offer
	for _, o := range batch {
		key := c.totalKey(o.total.Item)
		if segment := s.segment(key); !open.has(segment) {
			asked.add(segment)
			where = append(where, segment)
			runs = append(runs, run{key, []string{formatTotal(o.total), c.ttl()}})
			offers = append(offers, o)
		}
	}
	if len(runs) == 0 {
		c.metrics.put.skipped.Inc()
		return nil
	}
	results, _ := do(c.closing, c, &c.metrics.put, behind, asked, func(ctx context.Context) ([]rueidis.RedisResult, verdict) {
		results := setScript.exec(ctx, s, runs...)
		return results, judge(results, where)
	})
	for k, result := range results {
		err := result.Error()
		if err == nil {
			c.noted.add(offers[k].total)
		}
		if !unreachable(err) {
			answered = append(answered, offers[k])
		}
	}
	return answered
}

// ttl is the time to live in milliseconds, a little different each time: what was
// cached together should not be missed together.
func (c *Client) ttl() string {
	ttl := c.cfg.TTL.Milliseconds()
	return strconv.FormatInt(ttl-rand.Int64N(ttl/10+1), 10)
}

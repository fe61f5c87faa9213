package redis

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"likewise/internal/ledger"
	"likewise/internal/like"
)

// Bus is a [ledger.Feeder] that merges the feed of this node's ledger, which is
// complete and may be slow, with what other nodes publish, which is fast and may be
// lost, doubled or late. Its feeds become live when the ledger's feed has, and end
// with a gap when that had one. Feeds wait until Run runs.
type Bus struct {
	client *Client
	ledger ledger.Feeder
	out    ledger.Broadcast
	tooOld sync.Once // to say so

	mu   sync.Mutex
	live chan struct{} // closed while the ledger's feed is live; guarded by mu
}

// NewBus returns a bus over a ledger's feed.
func NewBus(c *Client, feeder ledger.Feeder) *Bus {
	return &Bus{client: c, ledger: feeder, live: make(chan struct{})}
}

// Run serves the feeds until ctx is done, and then returns nil. It returns
// [like.ErrClosed] when the ledger closes first. Afterwards all feeds have ended
// with [like.ErrClosed], and so has every goroutine of Run. It can be run once.
func (b *Bus) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for segment := range segments {
		wg.Go(func() { b.listen(ctx, segment) })
	}
	err := ledger.Follow(ctx, b.ledger, ledger.Follower{
		Live:    b.becomeLive,
		Changed: b.change,
		Lost: func(err error) {
			b.client.log.WarnContext(ctx, "feed of totals ended early", "error", err)
			b.lose()
		},
	})
	cancel()
	wg.Wait()
	b.out.Close()
	b.release()
	return err
}

// Feed implements [ledger.Feeder].
func (b *Bus) Feed(ctx context.Context) iter.Seq2[[]like.Total, error] {
	return func(yield func([]like.Total, error) bool) {
		b.mu.Lock()
		live := b.live
		b.mu.Unlock()
		select {
		case <-live:
		case <-ctx.Done():
			yield(nil, context.Cause(ctx))
			return
		}
		// Should the ledger's feed be lost right now, this one is open when the next
		// becomes live, and then ends with the gap.
		for totals, err := range b.out.Feed(ctx) {
			if !yield(totals, err) {
				return
			}
		}
	}
}

// change passes on what the ledger says. Where nobody told so before, the node that
// moved a total could not: what Redis has of it may be old.
func (b *Bus) change(totals []like.Total) {
	b.out.Publish(totals)
	b.client.Put(b.client.noted.missing(totals))
}

// becomeLive ends what was open while the ledger's feed was not.
func (b *Bus) becomeLive() {
	b.out.Gap()
	b.release()
}

func (b *Bus) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.live:
	default:
		close(b.live)
	}
}

func (b *Bus) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.client.metrics.gaps.Inc()
	b.live = make(chan struct{})
}

// listen receives the messages of one segment. It subscribes again whenever that
// ends: a slot moved, or a node is gone.
func (b *Bus) listen(ctx context.Context, segment int) {
	select {
	case <-b.client.connected:
	case <-ctx.Done():
		return
	}
	s := b.client.redis.Load()
	for pause := firstPause; ; {
		began := time.Now()
		err := s.Receive(ctx, s.B().Ssubscribe().Channel(b.client.channel(segment)).Build(), b.receive)
		if ctx.Err() != nil || b.client.closing.Err() != nil {
			return
		}
		if time.Since(began) > longestPause {
			pause = firstPause
		}
		b.client.metrics.resubscribed.Inc()
		if err != nil && strings.Contains(err.Error(), "unknown command") {
			b.tooOld.Do(func() {
				b.client.log.WarnContext(ctx, "Redis has no sharded channels, so changes of other nodes come late; use Redis 7 or later", "error", err)
			})
		}
		if !sleep(ctx, jitter(pause)) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// receive runs on the goroutine that reads a connection, and must be quick.
func (b *Bus) receive(message rueidis.PubSubMessage) {
	totals, err := parseTotals(message.Message)
	if err != nil {
		b.client.metrics.malformed.Inc()
		return
	}
	b.client.metrics.received.Add(float64(len(totals)))
	b.client.noted.add(totals...) // who tells has written before
	b.out.Publish(totals)
}

// channel names the channel of a segment; its slot is in that segment.
func (c *Client) channel(segment int) string { return c.key(busFormat, tags[segment]) }

// tell sends what is to be told of a batch to all nodes, one message per channel.
func (c *Client) tell(batch []offer) {
	s, open := c.reach()
	if s == nil || len(batch) == 0 {
		return
	}
	var told [segments][]like.Total
	for _, o := range batch {
		if o.tell {
			segment := segmentOf(c.totalKey(o.total.Item))
			told[segment] = append(told[segment], o.total)
		}
	}
	var asked set
	var where []int
	var commands rueidis.Commands
	sent := 0
	for segment, totals := range told {
		channel := c.channel(segment)
		if at := s.segment(channel); len(totals) > 0 && !open.has(at) {
			asked.add(at)
			where = append(where, at)
			sent += len(totals)
			message := rueidis.BinaryString(appendTotals(nil, totals))
			commands = append(commands, s.B().Spublish().Channel(channel).Message(message).Build())
		}
	}
	if len(commands) == 0 {
		return
	}
	_, ok := do(c.closing, c, &c.metrics.publish, behind, asked, func(ctx context.Context) (struct{}, verdict) {
		return struct{}{}, judge(s.DoMulti(ctx, commands...), where)
	})
	if ok {
		c.metrics.sent.Add(float64(sent))
	}
}

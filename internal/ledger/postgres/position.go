package postgres

import (
	"context"
	_ "embed"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed sql/position.sql
var positionSQL string

// replayedSQL asks a replica for its position.
const replayedSQL = "SELECT timeline, coalesce((pg_last_wal_replay_lsn() - '0/0')::bigint, 0) FROM likewise.layout"

// position is a place in the log of a database. Each promotion begins a new timeline,
// and places on different ones cannot be compared.
type position struct {
	timeline int64
	lsn      uint64
}

// reaches reports whether what is written up to p includes what is written up to end.
func (p position) reaches(end position) bool {
	return p.timeline == end.timeline && p.lsn >= end.lsn
}

// positions asks the primary how far its log reaches, once for all reads that wait for
// the answer and began before the question was sent (as Raft's ReadIndex does; Ongaro
// 2014, section 6.4).
type positions struct {
	turn chan struct{} // holds a token while a question is under way

	mu   sync.Mutex
	next *question // the one that is not sent yet
}

type question struct {
	done   chan struct{}
	answer position
	err    error
}

// ask returns a position that everything acknowledged before is within.
func (p *positions) ask(ctx context.Context, primary *pgxpool.Pool) (position, error) {
	p.mu.Lock()
	if p.next == nil {
		p.next = &question{done: make(chan struct{})}
	}
	mine := p.next
	p.mu.Unlock()
	select {
	case <-mine.done:
	case <-ctx.Done():
		return position{}, context.Cause(ctx)
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
		p.send(ctx, mine, primary)
	}
	return mine.answer, mine.err
}

// send asks for everybody who joined a question, unless somebody else did so.
func (p *positions) send(ctx context.Context, mine *question, primary *pgxpool.Pool) {
	p.mu.Lock()
	if p.next != mine {
		p.mu.Unlock() // it was sent, and answered before the turn was free
		return
	}
	p.next = nil
	p.mu.Unlock()
	// The others do not depend on this caller's context.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	mine.err = primary.QueryRow(ctx, positionSQL).Scan(&mine.answer.timeline, &mine.answer.lsn)
	close(mine.done)
}

package pebble

import "time"

// Stats is what a ledger did since it was opened, and how its store is now.
type Stats struct {
	Commits  int64 // groups of commands made durable together
	Commands int64 // commands acknowledged
	Changes  int64 // facts added and removed
	Refused  int64 // commands refused because the queue was full or too slow

	QueueLength int64         // commands waiting
	QueueAge    time.Duration // how long the writer has taken none of the waiting ones

	DiskFreeBytes uint64 // free on the store's file system; 0 when it cannot tell
	StoreBytes    uint64 // taken by the store
	LogBytes      uint64 // of them, by the write-ahead log
	DebtBytes     uint64 // still to be rewritten by compactions
	CacheBytes    int64  // used by the block cache
	MemtableBytes uint64 // used by memtables
	ReadDepth     int    // sorted runs that a read may have to look into
}

// Stats returns zeros after Close.
func (l *Ledger) Stats() Stats {
	end, err := l.calls.begin(l.calls.closing)
	if err != nil {
		return Stats{}
	}
	defer end()
	m := l.db.Metrics()
	s := Stats{
		Commits:       l.counters.commits.Load(),
		Commands:      l.counters.commands.Load(),
		Changes:       l.counters.changes.Load(),
		Refused:       l.counters.refused.Load(),
		QueueLength:   l.queue.length.Load(),
		StoreBytes:    m.DiskSpaceUsage(),
		LogBytes:      m.WAL.PhysicalSize,
		DebtBytes:     m.Compact.EstimatedDebt,
		CacheBytes:    m.BlockCache.Size,
		MemtableBytes: m.MemTable.Size,
		ReadDepth:     m.ReadAmp(),
	}
	if s.QueueLength > 0 {
		s.QueueAge = time.Since(l.queue.start) - time.Duration(l.queue.taken.Load())
	}
	if usage, err := l.cfg.FS.GetDiskUsage(l.cfg.Dir); err == nil {
		s.DiskFreeBytes = usage.AvailBytes
	}
	return s
}

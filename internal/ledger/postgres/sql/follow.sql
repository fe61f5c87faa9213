-- The drains of transactions that are not older than $1, with the oldest transaction
-- that is still running: what it and later ones drain is not to be seen yet, and is
-- what to ask for next. Beside each row the largest stamp of all drains, the database's
-- clock and the outbox's oldest stamp, in microseconds.
SELECT pg_snapshot_xmin(snapshot)::text::bigint, coalesce((SELECT max(last) FROM likewise.drains), 0),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    coalesce((SELECT min(last) FROM likewise.outbox), 0),
    coalesce(d.tx::text::bigint, 0), d.items, d.counts, d.versions
FROM pg_current_snapshot() AS snapshot
LEFT JOIN likewise.drains d ON d.tx >= $1::text::xid8

-- The drains of transactions that are not older than $1, with the oldest transaction
-- that is still running: what it and later ones drain is not to be seen yet, and is
-- what to ask for next. Of drains $2, which were seen, only that they are there. Beside
-- each row the largest stamp of all drains, the database's clock, the smallest and the
-- largest stamp of the outbox, in microseconds, and the era.
SELECT pg_snapshot_xmin(snapshot)::text::bigint, coalesce((SELECT max(last) FROM likewise.drains), 0),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    coalesce((SELECT min(last) FROM likewise.outbox), 0), coalesce((SELECT max(last) FROM likewise.outbox), 0),
    coalesce((SELECT id FROM likewise.era WHERE only_row), 0),
    coalesce(d.tx::text::bigint, 0),
    CASE WHEN NOT d.seen THEN d.items END, CASE WHEN NOT d.seen THEN d.counts END, CASE WHEN NOT d.seen THEN d.versions END
FROM pg_current_snapshot() AS snapshot
LEFT JOIN (SELECT *, coalesce(tx = ANY ($2::text[]::xid8[]), false) AS seen FROM likewise.drains) d ON d.tx >= $1::text::xid8

-- Applies one batch: at most one operation for each pair, pairs in the order of
-- the primary key, so that two batches never wait for each other in a circle. All
-- parts of the statement see one snapshot, taken after every command of the batch
-- was accepted. When another transaction adds the same fact after the snapshot, it
-- fails, and changes nothing.
--
-- $1 users, $2 items, $3 whether to like, $4 original times (0 = none), $5 places in
-- the order of acceptance, $6 the number of places, $7 a stamp that the caller has
-- seen, $8 its wall clock or null for the database's, $9 the distinct items, in order
WITH clock AS MATERIALIZED (
    -- The largest stamp of the commands acknowledged before is in the outbox, or was
    -- drained from it.
    SELECT greatest(
        coalesce($8::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
        1 + greatest($7::bigint, (SELECT max(last) FROM likewise.outbox), (SELECT max(last) FROM likewise.drains))
    ) AS base
), pair AS MATERIALIZED (
    SELECT u.*, l.since AS liked_since, l.xmin AS liked_in,
        CASE WHEN u.at <> 0 THEN u.at ELSE clock.base + u.place END AS since
    FROM clock, unnest($1::text[], $2::text[], $3::boolean[], $4::bigint[], $5::bigint[])
        WITH ORDINALITY AS u (user_id, item, likes, at, place, ord)
    LEFT JOIN LATERAL (
        SELECT l.since, l.xmin FROM likewise.likes l
        WHERE l.user_id = u.user_id AND l.item = u.item
        OFFSET 0 -- one look-up for each pair, whatever the planner guesses
    ) l ON true
), added AS (
    INSERT INTO likewise.likes (user_id, item, since)
    SELECT user_id, item, since FROM pair WHERE likes AND liked_since IS NULL ORDER BY ord
    RETURNING user_id, item
), removed AS (
    DELETE FROM likewise.likes l
    USING (SELECT * FROM pair WHERE NOT likes AND liked_since IS NOT NULL ORDER BY ord) p
    WHERE l.user_id = p.user_id AND l.item = p.item
    RETURNING l.user_id, l.item, l.xmin AS liked_in
), kept AS (
    INSERT INTO likewise.unliked (user_id, item, liked_in, unliked_in)
    SELECT user_id, item, liked_in, pg_current_xact_id()::xid FROM removed
), deltas AS (
    SELECT item, sum(delta)::int AS delta
    FROM (SELECT item, 1 AS delta FROM added UNION ALL SELECT item, -1 FROM removed) changes
    GROUP BY item
), sent AS (
    INSERT INTO likewise.outbox (last, items, deltas)
    SELECT (SELECT base FROM clock) + $6::bigint, array_agg(item), array_agg(delta)
    FROM deltas
    HAVING count(*) > 0
)
-- What the snapshot knew of pairs that were liked or removed lately, and by how much
-- its totals have still to move for each.
SELECT 'pair' AS kind, ord, coalesce(liked_since, -1) AS a,
    CASE WHEN liked_since IS NOT NULL AND EXISTS (SELECT FROM likewise.outbox o WHERE o.tx::xid = liked_in) THEN 1 ELSE 0 END
    + (SELECT coalesce(sum(
            CASE WHEN EXISTS (SELECT FROM likewise.outbox o WHERE o.tx::xid = g.liked_in) THEN 1 ELSE 0 END
            - CASE WHEN EXISTS (SELECT FROM likewise.outbox o WHERE o.tx::xid = g.unliked_in) THEN 1 ELSE 0 END), 0)
        FROM likewise.unliked g
        WHERE g.user_id = pair.user_id AND g.item = pair.item) AS b
FROM pair
WHERE liked_since IS NOT NULL OR EXISTS (SELECT FROM likewise.unliked)
UNION ALL
SELECT 'total', u.ord, t.count, t.version
FROM unnest($9::text[]) WITH ORDINALITY AS u (item, ord),
    LATERAL (SELECT t.count, t.version FROM likewise.totals t WHERE t.item = u.item OFFSET 0) t
UNION ALL
SELECT 'batch', (SELECT count(*) FROM added), (SELECT count(*) FROM removed), base FROM clock
UNION ALL
-- Which transaction of which era changed something, for asking what became of it.
SELECT 'xact', pg_current_xact_id()::text::bigint, coalesce((SELECT id FROM likewise.era WHERE only_row), 0), 0
FROM clock
WHERE EXISTS (SELECT FROM added) OR EXISTS (SELECT FROM removed)
UNION ALL
-- What a batch finds may be committed here and not on the replica that commits wait for,
-- because such a wait was cut off. So a batch that changes nothing waits as well.
SELECT 'waits', (pg_logical_emit_message(true, 'likewise', '') - '0/0')::bigint, 0, 0
FROM clock
WHERE current_setting('synchronous_standby_names') <> '' AND NOT EXISTS (SELECT FROM added) AND NOT EXISTS (SELECT FROM removed)

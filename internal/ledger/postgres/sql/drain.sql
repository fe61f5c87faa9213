-- Moves totals by up to $1 rows of the outbox, of which the last one reaches $2 items,
-- and tells which totals those are, all in one transaction: whatever fails, nothing was
-- taken and nothing was moved. Tells as well how many rows it found and how many of
-- them it took; the deltas are what is counted, since they are shorter than the items.
-- Drains of several nodes share the rows; totals are moved in the order of their
-- key, so that drains never wait for each other in a circle. A version is a time where
-- that is larger than the last one: so it goes on growing behind a move from another
-- store, and behind a failover that lost some.
WITH found AS MATERIALIZED (
    SELECT id, cardinality(deltas) AS items FROM likewise.outbox ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM likewise.outbox
    WHERE id = ANY (ARRAY(
        SELECT id FROM (SELECT id, sum(items) OVER (ORDER BY id) - items AS before FROM found) f WHERE before < $2::bigint
    ))
    RETURNING last, items, deltas
), moved AS (
    INSERT INTO likewise.totals AS t (item, count, version)
    SELECT u.item, sum(u.delta), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
    FROM taken, unnest(taken.items, taken.deltas) AS u (item, delta)
    GROUP BY u.item
    ORDER BY u.item
    ON CONFLICT (item) DO UPDATE SET count = t.count + excluded.count, version = greatest(t.version + 1, excluded.version)
    RETURNING item, count, version
), told AS (
    INSERT INTO likewise.drains (last, items, counts, versions)
    SELECT (SELECT max(last) FROM taken),
        coalesce(array_agg(item), '{}'), coalesce(array_agg(count), '{}'), coalesce(array_agg(version), '{}')
    FROM moved
    HAVING EXISTS (SELECT FROM taken)
    RETURNING items, counts, versions
)
SELECT (SELECT count(*) FROM found), (SELECT count(*) FROM taken), items, counts, versions FROM told

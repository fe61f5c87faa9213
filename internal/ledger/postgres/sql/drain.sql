-- Moves totals by up to $1 rows of the outbox and tells which totals those are, all
-- in one transaction: whatever fails, nothing was taken and nothing was moved.
-- Drains of several nodes share the rows; totals are moved in the order of their
-- key, so that drains never wait for each other in a circle.
WITH taken AS (
    DELETE FROM likewise.outbox
    WHERE id IN (SELECT id FROM likewise.outbox ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING last, collections, items, deltas
), moved AS (
    INSERT INTO likewise.totals AS t (collection, item_id, count, version)
    SELECT u.collection, u.item_id, sum(u.delta), 1
    FROM taken, unnest(taken.collections, taken.items, taken.deltas) AS u (collection, item_id, delta)
    GROUP BY u.collection, u.item_id
    ORDER BY u.collection, u.item_id
    ON CONFLICT (collection, item_id) DO UPDATE SET count = t.count + excluded.count, version = t.version + 1
    RETURNING collection, item_id, count, version
), told AS (
    INSERT INTO likewise.drains (last, collections, items, counts, versions)
    SELECT (SELECT max(last) FROM taken),
        coalesce(array_agg(collection), '{}'), coalesce(array_agg(item_id), '{}'),
        coalesce(array_agg(count), '{}'), coalesce(array_agg(version), '{}')
    FROM moved
    HAVING EXISTS (SELECT FROM taken)
    RETURNING collections, items, counts, versions
)
SELECT (SELECT count(*) FROM taken), collections, items, counts, versions FROM told

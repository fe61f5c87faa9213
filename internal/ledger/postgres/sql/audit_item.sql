-- The number of facts of item ($1, $2), and its total with what it has still to move
-- by, in one snapshot.
SELECT (SELECT count(*) FROM likewise.likes WHERE collection = $1 AND item_id = $2),
    coalesce((SELECT count FROM likewise.totals WHERE collection = $1 AND item_id = $2), 0)
    + coalesce((
        SELECT sum(u.delta)
        FROM likewise.outbox o, unnest(o.items, o.deltas) AS u (item, delta)
        WHERE u.item = $1 || '/' || $2
    ), 0)::bigint

-- The number of facts of item $1, and its total with what it has still to move by, in
-- one snapshot.
SELECT (SELECT count(*) FROM likewise.likes WHERE item = $1 AND since >= 0),
    coalesce((SELECT count FROM likewise.totals WHERE item = $1), 0)
    + coalesce((
        SELECT sum(u.delta) FROM likewise.outbox o, unnest(o.items, o.deltas) AS u (item, delta) WHERE u.item = $1
    ), 0)::bigint

-- Of up to $2 items behind item $1: the number of facts, and the total with what it has
-- still to move by, in one snapshot.
WITH facts AS (
    SELECT item, count(*) AS n FROM likewise.likes
    WHERE item > $1 AND since >= 0
    GROUP BY item ORDER BY item LIMIT $2
), totals AS (
    SELECT item, count AS n FROM likewise.totals WHERE item > $1 ORDER BY item LIMIT $2
), page AS (
    SELECT item FROM facts UNION SELECT item FROM totals ORDER BY item LIMIT $2
), pending AS (
    SELECT u.item, sum(u.delta)::bigint AS n
    FROM likewise.outbox o, unnest(o.items, o.deltas) AS u (item, delta)
    GROUP BY u.item
)
SELECT item, coalesce(facts.n, 0), coalesce(totals.n, 0) + coalesce(pending.n, 0)
FROM page LEFT JOIN facts USING (item) LEFT JOIN totals USING (item) LEFT JOIN pending USING (item)
ORDER BY item

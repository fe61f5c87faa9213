-- Of up to $3 items behind item ($1, $2): the number of facts, and the total with what
-- it has still to move by, in one snapshot.
WITH facts AS (
    SELECT collection, item_id, count(*) AS n FROM likewise.likes
    WHERE (collection, item_id) > ($1, $2)
    GROUP BY collection, item_id ORDER BY collection, item_id LIMIT $3
), totals AS (
    SELECT collection, item_id, count AS n FROM likewise.totals
    WHERE (collection, item_id) > ($1, $2)
    ORDER BY collection, item_id LIMIT $3
), page AS (
    SELECT collection, item_id FROM facts UNION SELECT collection, item_id FROM totals
    ORDER BY collection, item_id LIMIT $3
), pending AS (
    SELECT u.item, sum(u.delta)::bigint AS n
    FROM likewise.outbox o, unnest(o.items, o.deltas) AS u (item, delta)
    GROUP BY u.item
)
SELECT page.collection, page.item_id, coalesce(facts.n, 0), coalesce(totals.n, 0) + coalesce(pending.n, 0)
FROM page
LEFT JOIN facts USING (collection, item_id)
LEFT JOIN totals USING (collection, item_id)
LEFT JOIN pending ON pending.item = page.collection || '/' || page.item_id
ORDER BY page.collection, page.item_id

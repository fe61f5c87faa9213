-- The stamp since which user $1 likes each item, or -1: $2 collections, $3 items.
SELECT coalesce(l.since, -1)
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS u (collection, item_id, ord)
LEFT JOIN LATERAL (
    SELECT l.since FROM likewise.likes l
    WHERE l.user_id = $1 AND l.collection = u.collection AND l.item_id = u.item_id
    OFFSET 0
) l ON true
ORDER BY u.ord

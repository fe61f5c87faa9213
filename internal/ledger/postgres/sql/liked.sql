-- The stamp since which user $1 likes each of items $2, or -1.
SELECT coalesce(l.since, -1)
FROM unnest($2::text[]) WITH ORDINALITY AS u (item, ord)
LEFT JOIN LATERAL (
    SELECT l.since FROM likewise.likes l WHERE l.user_id = $1 AND l.item = u.item OFFSET 0
) l ON true
ORDER BY u.ord

-- The stamp of each pair's fact, or -1 without one: $1 users, $2 items.
SELECT coalesce(l.since, -1)
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (user_id, item, ord)
LEFT JOIN LATERAL (
    SELECT l.since FROM likewise.likes l WHERE l.user_id = u.user_id AND l.item = u.item OFFSET 0
) l ON true
ORDER BY u.ord

-- Which of users $2 like item $1, in order.
SELECT u.user_id
FROM unnest($2::text[]) WITH ORDINALITY AS u (user_id, ord),
    LATERAL (SELECT FROM likewise.likes l WHERE l.user_id = u.user_id AND l.item = $1 OFFSET 0) l
ORDER BY u.ord

-- Forgets drains that every node has seen, $1 after they happened, but not the largest
-- stamp.
DELETE FROM likewise.drains
WHERE at < clock_timestamp() - $1::interval AND last < (SELECT max(last) FROM likewise.drains)

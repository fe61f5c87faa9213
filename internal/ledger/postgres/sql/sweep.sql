-- Forgets removed likes that the totals know everything of.
DELETE FROM likewise.unliked g
WHERE NOT EXISTS (SELECT FROM likewise.outbox o WHERE o.tx::xid = g.liked_in)
    AND NOT EXISTS (SELECT FROM likewise.outbox o WHERE o.tx::xid = g.unliked_in)

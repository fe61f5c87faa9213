-- The totals that exist of items $1.
SELECT u.ord, t.count, t.version
FROM unnest($1::text[]) WITH ORDINALITY AS u (item, ord),
    LATERAL (SELECT t.count, t.version FROM likewise.totals t WHERE t.item = u.item OFFSET 0) t

-- The totals that exist: $1 collections, $2 items.
SELECT u.ord, t.count, t.version
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (collection, item_id, ord),
    LATERAL (
        SELECT t.count, t.version FROM likewise.totals t
        WHERE t.collection = u.collection AND t.item_id = u.item_id
        OFFSET 0
    ) t

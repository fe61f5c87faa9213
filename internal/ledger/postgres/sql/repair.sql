-- Moves the total of item ($1, $2) by $3 and tells so, as a drain does.
WITH moved AS (
    INSERT INTO likewise.totals AS t (collection, item_id, count, version) VALUES ($1, $2, $3, 1)
    ON CONFLICT (collection, item_id) DO UPDATE SET count = t.count + excluded.count, version = t.version + 1
    RETURNING collection, item_id, count, version
)
INSERT INTO likewise.drains (last, items, counts, versions)
SELECT 0, ARRAY[collection || '/' || item_id], ARRAY[count], ARRAY[version] FROM moved

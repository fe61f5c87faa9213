-- Moves the total of item $1 by $2 and tells so, as a drain does.
WITH moved AS (
    INSERT INTO likewise.totals AS t (item, count, version) VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    ON CONFLICT (item) DO UPDATE SET count = t.count + excluded.count, version = greatest(t.version + 1, excluded.version)
    RETURNING item, count, version
)
INSERT INTO likewise.drains (last, items, counts, versions)
SELECT 0, ARRAY[item], ARRAY[count], ARRAY[version] FROM moved

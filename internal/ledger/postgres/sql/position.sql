-- How far the log of the primary reaches, and on which timeline (the first eight digits
-- of the name of a file of it), which is noted when it is a new one, so that replicas
-- show whether theirs is the same.
WITH here AS (
    SELECT ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::bigint AS timeline
), noted AS (
    UPDATE likewise.layout l SET timeline = here.timeline FROM here WHERE l.timeline <> here.timeline
)
SELECT timeline, (pg_current_wal_flush_lsn() - '0/0')::bigint FROM here

-- +goose Up

-- The facts. One row is "user likes item since", in microseconds since 1970 UTC; an
-- item is collection/id, as in posts/42, and no collection has a slash.
-- COLLATE "C" compares bytes: names that differ in one byte are different, and
-- lists have one order everywhere. The primary key answers whether a user likes an
-- item, the two indexes are the two lists. They hold every row, but only a query that
-- says "since >= 0" can use them: before the tables are analyzed for the first time
-- the planner would else look for one pair among all likes of a popular item.
CREATE TABLE likewise.likes (
    user_id text COLLATE "C" NOT NULL,
    item    text COLLATE "C" NOT NULL,
    since   bigint NOT NULL CHECK (since >= 0),
    PRIMARY KEY (user_id, item)
);
CREATE INDEX likers ON likewise.likes (item, since, user_id) WHERE since >= 0;
CREATE INDEX liked_by ON likewise.likes (user_id, since, item) WHERE since >= 0;

-- The totals, moved by drains only. The count may be below 0 for a moment, when
-- the removal of a like is drained before the like.
CREATE TABLE likewise.totals (
    item    text COLLATE "C" PRIMARY KEY,
    count   bigint NOT NULL,
    version bigint NOT NULL
) WITH (fillfactor = 70);

-- What totals have still to move by: one row for each transaction that changed
-- facts, with its summed deltas. last is the largest stamp that it may have used.
CREATE TABLE likewise.outbox (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tx     xid8 NOT NULL DEFAULT pg_current_xact_id(),
    last   bigint NOT NULL,
    items  text[] COLLATE "C" NOT NULL,
    deltas integer[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
-- The row of a transaction is found by the 32 bits that a fact's xmin has.
CREATE INDEX outbox_tx ON likewise.outbox USING hash ((tx::xid));
CREATE INDEX outbox_last ON likewise.outbox (last);

-- Removed likes whose ±1 may still be in the outbox: what a total does not yet know
-- about a pair that has no row any more. Swept behind the drains.
CREATE TABLE likewise.unliked (
    user_id    text COLLATE "C" NOT NULL,
    item       text COLLATE "C" NOT NULL,
    liked_in   xid NOT NULL,
    unliked_in xid NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX unliked_pair ON likewise.unliked (user_id, item);

-- The totals that each drain moved, as they were after it: what nodes follow. Old
-- rows are deleted, but never the one with the largest stamp.
CREATE TABLE likewise.drains (
    tx       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    last     bigint NOT NULL,
    items    text[] COLLATE "C" NOT NULL,
    counts   bigint[] NOT NULL,
    versions bigint[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX drains_tx ON likewise.drains (tx);
CREATE INDEX drains_last ON likewise.drains (last);
CREATE INDEX drains_at ON likewise.drains (at);

-- The time within which a transaction id belongs to one transaction. A server that
-- crashed gives out again the ids that it lost from its log, and so does a standby that
-- took over: both empty an unlogged table. A single row, or none until the next write.
CREATE UNLOGGED TABLE likewise.era (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       bigint NOT NULL
);

-- Which part of which set of databases this one is; a single row. timeline is the one of
-- the log that nodes last found the primary on: a replica that does not show it follows
-- a server that is no primary any more.
CREATE TABLE likewise.layout (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    ledger   uuid NOT NULL,
    shard    integer NOT NULL,
    shards   integer NOT NULL,
    timeline bigint NOT NULL DEFAULT 0,
    CHECK (shard >= 0 AND shard < shards)
);

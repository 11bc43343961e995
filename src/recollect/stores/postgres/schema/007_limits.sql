-- How much a tenant may store and ask for. Without a row, or where a column is NULL, there is no limit. The application
-- reads it, and only the owner changes it.
CREATE TABLE {schema}.limits (
    tenant              text   COLLATE "C" NOT NULL,
    memories            bigint CHECK (memories >= 0),
    bytes               bigint CHECK (bytes >= 0),              -- of content: texts and data of memories
    requests_per_second double precision CHECK (requests_per_second > 0),
    PRIMARY KEY (tenant)
);
ALTER TABLE {schema}.limits ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.limits FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.limits USING (tenant = nullif(current_setting('recollect.tenant', true), ''));

-- How many memories a place has now, and the bytes of their content. NULL is for a place that was not counted yet: the
-- next change of it counts. So adding the columns rewrites nothing, and no writer waits for all places to be counted.
ALTER TABLE {schema}.places ADD COLUMN live_memories bigint;
ALTER TABLE {schema}.places ADD COLUMN content_bytes bigint;
ALTER TABLE {schema}.places ALTER COLUMN live_memories SET DEFAULT 0;
ALTER TABLE {schema}.places ALTER COLUMN content_bytes SET DEFAULT 0;

-- A process of the version before calls this one. It does not say what it added, so the place is to be counted again.
-- Counters are NULL in a place that was just made on Citus, where none of them has a default.
CREATE OR REPLACE FUNCTION {schema}.write_head(
    of_tenant text, of_workspace text, new_memories bigint, new_things bigint, new_entries bigint, new_sealed text
)
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    known bigint;
    added bigint;
    last  text;
BEGIN
    IF of_tenant IS NULL OR of_tenant IS DISTINCT FROM nullif(current_setting('recollect.tenant', true), '') THEN
        RAISE insufficient_privilege USING MESSAGE = 'the tenant is not the one of this transaction';
    END IF;
    SELECT coalesce(p.entries, 0) INTO known FROM {schema}.places p
        WHERE p.tenant = of_tenant AND p.workspace = of_workspace FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF new_entries = known THEN
        UPDATE {schema}.places SET memories = new_memories, things = new_things, live_memories = NULL,
            content_bytes = NULL WHERE tenant = of_tenant AND workspace = of_workspace;
        RETURN;
    END IF;
    SELECT count(*), max(a.hash) FILTER (WHERE a.seq = new_entries) INTO added, last FROM {schema}.audit a
        WHERE a.tenant = of_tenant AND a.workspace = of_workspace AND a.seq > known AND a.seq <= new_entries;
    IF new_entries < known OR added <> new_entries - known OR last IS DISTINCT FROM new_sealed THEN
        RAISE insufficient_privilege USING MESSAGE = 'an audit log is only ever appended to';
    END IF;
    UPDATE {schema}.places SET memories = new_memories, things = new_things, entries = new_entries, sealed = new_sealed,
        live_memories = NULL, content_bytes = NULL WHERE tenant = of_tenant AND workspace = of_workspace;
END
$$;

-- The same, with what was added to the place or, below zero, taken out of it. Where the tenant has limits, their row is
-- locked until the transaction ends, so that of two that commit at the same time each sees what the other has added.
CREATE FUNCTION {schema}.write_head(
    of_tenant text, of_workspace text, new_memories bigint, new_things bigint, new_entries bigint, new_sealed text,
    added_memories bigint, added_bytes bigint
)
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    known          bigint;
    added          bigint;
    last           text;
    live           bigint;
    content        bigint;
    most_memories  bigint;
    most_bytes     bigint;
    used_memories  bigint;
    used_bytes     bigint;
    uncounted      text;
BEGIN
    IF of_tenant IS NULL OR of_tenant IS DISTINCT FROM nullif(current_setting('recollect.tenant', true), '') THEN
        RAISE insufficient_privilege USING MESSAGE = 'the tenant is not the one of this transaction';
    END IF;
    SELECT coalesce(p.entries, 0), p.live_memories + added_memories, p.content_bytes + added_bytes INTO known, live, content
        FROM {schema}.places p WHERE p.tenant = of_tenant AND p.workspace = of_workspace FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF new_entries <> known THEN
        SELECT count(*), max(a.hash) FILTER (WHERE a.seq = new_entries) INTO added, last FROM {schema}.audit a
            WHERE a.tenant = of_tenant AND a.workspace = of_workspace AND a.seq > known AND a.seq <= new_entries;
        IF new_entries < known OR added <> new_entries - known OR last IS DISTINCT FROM new_sealed THEN
            RAISE insufficient_privilege USING MESSAGE = 'an audit log is only ever appended to';
        END IF;
    END IF;
    IF live IS NULL OR content IS NULL THEN
        SELECT count(*) INTO live FROM {schema}.memories m WHERE m.tenant = of_tenant AND m.workspace = of_workspace;
        SELECT coalesce(sum(octet_length(c.text) + coalesce(octet_length(c.data), 0)), 0) INTO content
            FROM {schema}.contents c WHERE c.tenant = of_tenant AND c.workspace = of_workspace;
    END IF;
    IF live = 0 THEN
        content := 0;  -- also where somebody changed a text in the table, and its size with it
    END IF;
    UPDATE {schema}.places SET memories = new_memories, things = new_things, entries = new_entries,
        sealed = CASE WHEN new_entries = known THEN sealed ELSE new_sealed END,
        live_memories = live, content_bytes = content WHERE tenant = of_tenant AND workspace = of_workspace;
    IF added_memories <= 0 AND added_bytes <= 0 THEN
        RETURN;
    END IF;
    SELECT l.memories, l.bytes INTO most_memories, most_bytes FROM {schema}.limits l
        WHERE l.tenant = of_tenant FOR UPDATE;
    IF most_memories IS NULL AND most_bytes IS NULL THEN
        RETURN;
    END IF;
    SELECT coalesce(sum(p.live_memories), 0), coalesce(sum(p.content_bytes), 0) INTO used_memories, used_bytes
        FROM {schema}.places p WHERE p.tenant = of_tenant;
    FOR uncounted IN SELECT p.workspace FROM {schema}.places p
        WHERE p.tenant = of_tenant AND (p.live_memories IS NULL OR p.content_bytes IS NULL) LOOP
        SELECT used_memories + count(*) INTO used_memories FROM {schema}.memories m
            WHERE m.tenant = of_tenant AND m.workspace = uncounted;
        SELECT used_bytes + coalesce(sum(octet_length(c.text) + coalesce(octet_length(c.data), 0)), 0) INTO used_bytes
            FROM {schema}.contents c WHERE c.tenant = of_tenant AND c.workspace = uncounted;
    END LOOP;
    IF added_memories > 0 AND used_memories > most_memories THEN
        RAISE EXCEPTION USING ERRCODE = 'RL001', MESSAGE = 'the limit of memories of this tenant is reached',
            DETAIL = format('memories %s %s %s', most_memories, used_memories - added_memories, added_memories);
    END IF;
    IF added_bytes > 0 AND used_bytes > most_bytes THEN
        RAISE EXCEPTION USING ERRCODE = 'RL001', MESSAGE = 'the limit of bytes of this tenant is reached',
            DETAIL = format('bytes %s %s %s', most_bytes, used_bytes - added_bytes, added_bytes);
    END IF;
END
$$;
REVOKE ALL ON FUNCTION {schema}.write_head(text, text, bigint, bigint, bigint, text, bigint, bigint) FROM PUBLIC;

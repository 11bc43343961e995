-- The counters of a place say how long its audit log is, and what it ends with. The application writes them by this
-- function alone, so it can make the log longer, by entries that are there, and never shorter.
CREATE FUNCTION {schema}.write_head(
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
    SELECT p.entries INTO known FROM {schema}.places p
        WHERE p.tenant = of_tenant AND p.workspace = of_workspace FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF new_entries = known THEN
        UPDATE {schema}.places SET memories = new_memories, things = new_things
            WHERE tenant = of_tenant AND workspace = of_workspace;
        RETURN;
    END IF;
    SELECT count(*), max(a.hash) FILTER (WHERE a.seq = new_entries) INTO added, last FROM {schema}.audit a
        WHERE a.tenant = of_tenant AND a.workspace = of_workspace AND a.seq > known AND a.seq <= new_entries;
    IF new_entries < known OR added <> new_entries - known OR last IS DISTINCT FROM new_sealed THEN
        RAISE insufficient_privilege USING MESSAGE = 'an audit log is only ever appended to';
    END IF;
    UPDATE {schema}.places SET memories = new_memories, things = new_things, entries = new_entries, sealed = new_sealed
        WHERE tenant = of_tenant AND workspace = of_workspace;
END
$$;
REVOKE ALL ON FUNCTION {schema}.write_head(text, text, bigint, bigint, bigint, text) FROM PUBLIC;

-- Removing a workspace takes its audit log along: only when nothing else of it is left, and with the workspace itself.
DROP FUNCTION {schema}.drop_log(text, text);
CREATE FUNCTION {schema}.drop_place(of_tenant text, of_workspace text)
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF of_tenant IS NULL OR of_tenant IS DISTINCT FROM nullif(current_setting('recollect.tenant', true), '') THEN
        RAISE insufficient_privilege USING MESSAGE = 'the tenant is not the one of this transaction';
    END IF;
    IF EXISTS (SELECT FROM {schema}.memories WHERE tenant = of_tenant AND workspace = of_workspace)
        OR EXISTS (SELECT FROM {schema}.contents WHERE tenant = of_tenant AND workspace = of_workspace)
        OR EXISTS (SELECT FROM {schema}.things WHERE tenant = of_tenant AND workspace = of_workspace)
        OR EXISTS (SELECT FROM {schema}.undo WHERE tenant = of_tenant AND workspace = of_workspace) THEN
        RAISE insufficient_privilege USING MESSAGE = 'the audit log of a workspace goes with the last of the workspace';
    END IF;
    DELETE FROM {schema}.audit WHERE tenant = of_tenant AND workspace = of_workspace;
    DELETE FROM {schema}.places WHERE tenant = of_tenant AND workspace = of_workspace;
END
$$;
REVOKE ALL ON FUNCTION {schema}.drop_place(text, text) FROM PUBLIC;

-- Row-level security on every table. Without the setting there are no rows: it is '' after a transaction that had one.
-- `search` is not forced: the function below reads it as its owner, and nobody else may.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['places', 'memories', 'contents', 'tags', 'embeddings', 'search', 'audit', 'undo', 'things',
        'placements', 'moves', 'changes'] LOOP
        EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', name);
        IF name <> 'search' THEN
            EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', name);
        END IF;
        EXECUTE format(
            'CREATE POLICY own_tenant ON {schema}.%I USING (tenant = nullif(current_setting(''recollect.tenant'', true), ''''))',
            name
        );
    END LOOP;
END
$$;

-- Which memories have each of some words. An index on words cannot be used under row-level security, because matching
-- is not leakproof. So this function reads it in the place of its owner, and only ever for the tenant of the setting.
CREATE FUNCTION {schema}.having(of_tenant text, of_workspace text, queries text[])
RETURNS TABLE (number integer, seq bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE ROWS 200
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF of_tenant IS NULL OR of_tenant IS DISTINCT FROM nullif(current_setting('recollect.tenant', true), '') THEN
        RAISE insufficient_privilege USING MESSAGE = 'the tenant is not the one of this transaction';
    END IF;
    FOR number IN 1 .. coalesce(array_length(queries, 1), 0) LOOP
        RETURN QUERY SELECT DISTINCT number, s.seq FROM {schema}.search s
            WHERE s.tenant = of_tenant AND s.workspace = of_workspace AND s.words @@ queries[number]::tsquery;
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION {schema}.having(text, text, text[]) FROM PUBLIC;

-- Removing a workspace takes its audit log along, which the application may not change otherwise.
CREATE FUNCTION {schema}.drop_log(of_tenant text, of_workspace text)
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF of_tenant IS NULL OR of_tenant IS DISTINCT FROM nullif(current_setting('recollect.tenant', true), '') THEN
        RAISE insufficient_privilege USING MESSAGE = 'the tenant is not the one of this transaction';
    END IF;
    DELETE FROM {schema}.audit WHERE tenant = of_tenant AND workspace = of_workspace;
END
$$;
REVOKE ALL ON FUNCTION {schema}.drop_log(text, text) FROM PUBLIC;

-- The same with one table in each statement, which is what Citus takes in a function that runs on a worker.
CREATE OR REPLACE FUNCTION {schema}.drop_place(of_tenant text, of_workspace text)
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF of_tenant IS NULL OR of_tenant IS DISTINCT FROM nullif(current_setting('recollect.tenant', true), '') THEN
        RAISE insufficient_privilege USING MESSAGE = 'the tenant is not the one of this transaction';
    END IF;
    PERFORM FROM {schema}.memories WHERE tenant = of_tenant AND workspace = of_workspace LIMIT 1;
    IF NOT FOUND THEN
        PERFORM FROM {schema}.contents WHERE tenant = of_tenant AND workspace = of_workspace LIMIT 1;
    END IF;
    IF NOT FOUND THEN
        PERFORM FROM {schema}.things WHERE tenant = of_tenant AND workspace = of_workspace LIMIT 1;
    END IF;
    IF NOT FOUND THEN
        PERFORM FROM {schema}.undo_items WHERE tenant = of_tenant AND workspace = of_workspace LIMIT 1;
    END IF;
    IF FOUND THEN
        RAISE insufficient_privilege USING MESSAGE = 'the audit log of a workspace goes with the last of the workspace';
    END IF;
    DELETE FROM {schema}.audit WHERE tenant = of_tenant AND workspace = of_workspace;
    DELETE FROM {schema}.places WHERE tenant = of_tenant AND workspace = of_workspace;
END
$$;

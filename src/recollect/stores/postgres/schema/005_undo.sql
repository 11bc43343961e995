-- What it takes to undo an audit entry, a row for each memory or document. The content of a memory is here only once it
-- was deleted: a memory that was changed has the old values of its fields here.
CREATE TABLE {schema}.undo_items (
    tenant    text    COLLATE "C" NOT NULL,
    workspace text    COLLATE "C" NOT NULL,
    entry     bigint  NOT NULL,
    item      integer NOT NULL,
    what      text    COLLATE "C" NOT NULL,  -- deleted, changed or thing
    name      text    COLLATE "C" NOT NULL,  -- the id of the memory, or shelf/key
    body      bytea   NOT NULL,
    PRIMARY KEY (tenant, workspace, entry, item)
);
CREATE INDEX undo_items_by_memory ON {schema}.undo_items (tenant, workspace, name) WHERE what <> 'thing';

-- The owner reads all tenants' rows for this one statement: the policies hold for it only while they are forced.
ALTER TABLE {schema}.undo NO FORCE ROW LEVEL SECURITY;
ALTER TABLE {schema}.memories NO FORCE ROW LEVEL SECURITY;
INSERT INTO {schema}.undo_items
SELECT u.tenant, u.workspace, u.seq, r.number, CASE WHEN m.id IS NULL THEN 'deleted' ELSE 'changed' END,
    r.value ->> 'id',
    convert_to(CASE WHEN m.id IS NULL THEN r.value::text ELSE (
        SELECT json_object_agg(f.key, f.value)::text FROM json_each(r.value) f WHERE f.key IN ('lifetime', 'importance',
            'accessed_at', 'access_count', 'expires_at', 'archived_at', 'superseded_by', 'tags', 'references',
            'derived_from', 'metadata')
    ) END, 'UTF8')
FROM {schema}.undo u CROSS JOIN LATERAL json_array_elements(convert_from(u.before, 'UTF8')::json)
    WITH ORDINALITY AS r (value, number)
LEFT JOIN {schema}.memories m ON m.tenant = u.tenant AND m.workspace = u.workspace AND m.id = r.value ->> 'id';
INSERT INTO {schema}.undo_items
SELECT u.tenant, u.workspace, u.seq, 1000000 + t.number, 'thing', (t.value ->> 'shelf') || '/' || (t.value ->> 'key'),
    convert_to(t.value::text, 'UTF8')
FROM {schema}.undo u CROSS JOIN LATERAL json_array_elements(convert_from(u.things, 'UTF8')::json)
    WITH ORDINALITY AS t (value, number)
WHERE u.things IS NOT NULL;
ALTER TABLE {schema}.memories FORCE ROW LEVEL SECURITY;

ALTER TABLE {schema}.undo_items ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.undo_items FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.undo_items
    USING (tenant = nullif(current_setting('recollect.tenant', true), ''));

CREATE OR REPLACE FUNCTION {schema}.drop_place(of_tenant text, of_workspace text)
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
        OR EXISTS (SELECT FROM {schema}.undo_items WHERE tenant = of_tenant AND workspace = of_workspace) THEN
        RAISE insufficient_privilege USING MESSAGE = 'the audit log of a workspace goes with the last of the workspace';
    END IF;
    DELETE FROM {schema}.audit WHERE tenant = of_tenant AND workspace = of_workspace;
    DELETE FROM {schema}.places WHERE tenant = of_tenant AND workspace = of_workspace;
END
$$;

DROP TABLE {schema}.undo;

-- What the application may do; run after every migration, where the roles are there.
GRANT USAGE ON SCHEMA {schema} TO {app}, {admin};
GRANT SELECT ON {schema}.migrations TO {app}, {admin};
-- A place can be made, with nothing in it, and locked. Its counters are written, and it is removed, by functions that
-- look at its log. Citus inserts every column, so that a policy says what may be in them, and takes one list of columns.
REVOKE INSERT, UPDATE, DELETE ON {schema}.places FROM {app};
GRANT SELECT, INSERT ON {schema}.places TO {app};
GRANT UPDATE (memories) ON {schema}.places TO {app};
DROP POLICY IF EXISTS begins_empty ON {schema}.places;
CREATE POLICY begins_empty ON {schema}.places AS RESTRICTIVE FOR INSERT TO {app}
    WITH CHECK (memories = 0 AND things = 0 AND entries = 0 AND sealed = '' AND nearest IS NULL AND live_memories = 0 AND
        content_bytes = 0);
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.memories, {schema}.contents, {schema}.tags,
    {schema}.embeddings, {schema}.undo_items, {schema}.things TO {app};
GRANT SELECT, INSERT ON {schema}.audit TO {app};
GRANT INSERT, DELETE ON {schema}.search TO {app};
GRANT SELECT (tenant, workspace, seq, part) ON {schema}.search TO {app};
-- Where a tenant is and how much it may store, only the owner changes.
GRANT SELECT ON {schema}.placements, {schema}.moves, {schema}.limits TO {app};
GRANT SELECT, INSERT ON {schema}.changes TO {app};
GRANT EXECUTE ON FUNCTION {schema}.having(text, text, text[]), {schema}.drop_place(text, text),
    {schema}.write_head(text, text, bigint, bigint, bigint, text),
    {schema}.write_head(text, text, bigint, bigint, bigint, text, bigint, bigint),
    {schema}.postings(text, text, text[], bigint) TO {app};
GRANT SELECT ON {schema}.places, {schema}.placements TO {admin};
DROP POLICY IF EXISTS all_tenants ON {schema}.places;
CREATE POLICY all_tenants ON {schema}.places FOR SELECT TO {admin} USING (true);
DROP POLICY IF EXISTS all_tenants ON {schema}.placements;
CREATE POLICY all_tenants ON {schema}.placements FOR SELECT TO {admin} USING (true);

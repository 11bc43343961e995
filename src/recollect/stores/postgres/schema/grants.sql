-- What the application may do; run after every migration, where the roles are there.
GRANT USAGE ON SCHEMA {schema} TO {app}, {admin};
GRANT SELECT ON {schema}.migrations TO {app}, {admin};
-- A place can be made, and locked. Its counters are written, and it is removed, by functions that look at its log.
-- Citus takes one list of columns in a GRANT.
REVOKE INSERT, UPDATE, DELETE ON {schema}.places FROM {app};
GRANT SELECT ON {schema}.places TO {app};
GRANT INSERT (tenant, workspace) ON {schema}.places TO {app};
GRANT UPDATE (memories) ON {schema}.places TO {app};
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

-- The same vectors for comparing: normalised, in half precision, in a narrow table. Only where pgvector is installed.
CREATE TABLE {schema}.{vectors} (
    tenant    text   COLLATE "C" NOT NULL,
    workspace text   COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    model     text   COLLATE "C" NOT NULL,  -- with its dimensions
    v         {extensions}.halfvec NOT NULL,
    PRIMARY KEY (tenant, workspace, seq)
) {partitioned};
ALTER TABLE {schema}.{vectors} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {schema}.{vectors} FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON {schema}.{vectors} USING (tenant = nullif(current_setting('recollect.tenant', true), ''));

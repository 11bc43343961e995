-- Every table begins with the tenant, so that the same schema runs on one server, and distributed by tenant.
-- Texts are compared byte by byte: that is the order of Unicode, and what row-level security can use indexes for.

-- One row per place. Whoever writes there holds its lock; the counters number what is stored.
CREATE TABLE {schema}.places (
    tenant    text   COLLATE "C" NOT NULL,
    workspace text   COLLATE "C" NOT NULL,  -- empty for what the accounts of the tenant share
    memories  bigint NOT NULL DEFAULT 0,
    things    bigint NOT NULL DEFAULT 0,
    entries   bigint NOT NULL DEFAULT 0,
    sealed    text   NOT NULL DEFAULT '',   -- the hash of the last audit entry
    nearest   text   COLLATE "C",           -- which vectors have an index of their own
    PRIMARY KEY (tenant, workspace)
) WITH (fillfactor = 50);

-- What filters and scores need of every memory. Narrow, because a question looks at all of a place.
CREATE TABLE {schema}.memories (
    tenant         text   COLLATE "C" NOT NULL,
    workspace      text   COLLATE "C" NOT NULL,
    seq            bigint NOT NULL,
    created_at     bigint NOT NULL,         -- times are microseconds since 1970
    expires_at     bigint,
    archived_at    bigint,
    accessed_at    bigint NOT NULL,
    access_count   bigint NOT NULL,
    importance     double precision NOT NULL,
    text_key       bigint,                  -- a hash of the text, of what is in no conversation
    length         integer NOT NULL,
    id             text   COLLATE "C" NOT NULL,
    tier           text   COLLATE "C" NOT NULL,
    kind           text   COLLATE "C" NOT NULL,
    lifetime       text   COLLATE "C" NOT NULL,
    speaker        text   COLLATE "C" NOT NULL,
    account        text   COLLATE "C",
    channel        text   COLLATE "C",
    conversation   text   COLLATE "C",
    agent          text   COLLATE "C",
    role           text   COLLATE "C",
    source         text   COLLATE "C",
    superseded_by  text   COLLATE "C",
    named          text   COLLATE "C",      -- the name before a colon, which may be the speaker's
    embedded       text   COLLATE "C",      -- model and dimensions of its vector
    PRIMARY KEY (tenant, workspace, seq)
) WITH (fillfactor = 90);

CREATE UNIQUE INDEX memories_by_id ON {schema}.memories (tenant, workspace, id);
CREATE INDEX memories_by_time ON {schema}.memories (tenant, workspace, created_at, seq);
CREATE INDEX memories_by_vector ON {schema}.memories (tenant, workspace, embedded, seq);
CREATE INDEX memories_by_conversation ON {schema}.memories (tenant, workspace, conversation, seq)
    WHERE conversation IS NOT NULL;
CREATE INDEX memories_by_successor ON {schema}.memories (tenant, workspace, superseded_by)
    WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_by_text ON {schema}.memories (tenant, workspace, text_key) WHERE text_key IS NOT NULL;

-- The rest of a memory, read only for those that are shown.
CREATE TABLE {schema}.contents (
    tenant         text   COLLATE "C" NOT NULL,
    workspace      text   COLLATE "C" NOT NULL,
    seq            bigint NOT NULL,
    text           text   NOT NULL,
    data           text,
    tags           text,
    refs           text,
    metadata       text,
    checksum       text   NOT NULL,
    schema_version integer NOT NULL,
    PRIMARY KEY (tenant, workspace, seq)
);

-- A tag and everything above it: `a.b` stands under `a` as well. Equality of texts is leakproof, so indexes are used.
CREATE TABLE {schema}.tags (
    tenant    text   COLLATE "C" NOT NULL,
    workspace text   COLLATE "C" NOT NULL,
    tag       text   COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    PRIMARY KEY (tenant, workspace, tag, seq)
);
CREATE INDEX tags_by_memory ON {schema}.tags (tenant, workspace, seq);

-- Vectors as they were given: little-endian float32.
CREATE TABLE {schema}.embeddings (
    tenant    text   COLLATE "C" NOT NULL,
    workspace text   COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    model     text   COLLATE "C",
    vector    bytea  NOT NULL,
    PRIMARY KEY (tenant, workspace, seq)
);
ALTER TABLE {schema}.embeddings ALTER COLUMN vector SET STORAGE EXTERNAL;

-- The words of a memory, each with a key of its place before it, so that one index serves all and finds only one's own.
-- Long texts are several rows: a tsvector has room for so much only.
CREATE TABLE {schema}.search (
    tenant    text   COLLATE "C" NOT NULL,
    workspace text   COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    part      integer NOT NULL,
    words     tsvector NOT NULL,
    PRIMARY KEY (tenant, workspace, seq, part)
);
CREATE INDEX search_by_word ON {schema}.search USING gin (words) WITH (gin_pending_list_limit = 512);

-- The audit log, and what it takes to undo an entry.
CREATE TABLE {schema}.audit (
    tenant    text   COLLATE "C" NOT NULL,
    workspace text   COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    id        text   NOT NULL,
    at        bigint NOT NULL,
    action    text   NOT NULL,
    message   text   NOT NULL,
    folded    text   NOT NULL,              -- the message without regard to case
    actor     text,
    meta      text   NOT NULL,
    hash      text   NOT NULL,
    PRIMARY KEY (tenant, workspace, seq)
);

CREATE TABLE {schema}.undo (
    tenant    text   COLLATE "C" NOT NULL,
    workspace text   COLLATE "C" NOT NULL,
    seq       bigint NOT NULL,
    at        bigint NOT NULL,
    before    bytea  NOT NULL,
    things    bytea,
    PRIMARY KEY (tenant, workspace, seq)
);

-- What is addressed rather than recalled. The number tells the order in which things were first kept.
CREATE TABLE {schema}.things (
    tenant     text   COLLATE "C" NOT NULL,
    workspace  text   COLLATE "C" NOT NULL,
    seq        bigint NOT NULL,
    shelf      text   COLLATE "C" NOT NULL,
    key        text   COLLATE "C" NOT NULL,
    parent     text   COLLATE "C",
    account    text   COLLATE "C",
    agent      text   COLLATE "C",
    version    bigint NOT NULL,
    created_at bigint NOT NULL,
    changed_at bigint NOT NULL,
    body       text   NOT NULL,
    PRIMARY KEY (tenant, workspace, shelf, key)
);
CREATE INDEX things_in_order ON {schema}.things (tenant, workspace, seq);
CREATE INDEX things_by_parent ON {schema}.things (tenant, workspace, shelf, parent, seq);

-- Which server each tenant is on, kept on the one that is called home. Without a row it is home.
CREATE TABLE {schema}.placements (
    tenant    text   COLLATE "C" NOT NULL,
    server    text   COLLATE "C" NOT NULL,
    move      text   COLLATE "C" NOT NULL DEFAULT '',  -- by which it came there
    mover     text   COLLATE "C" NOT NULL DEFAULT '',  -- who may move it on: nobody else's word counts any more
    PRIMARY KEY (tenant)
);

-- A tenant that is being moved, or was. Whoever writes looks here first, under a lock that a change of it waits for.
CREATE TABLE {schema}.moves (
    tenant     text   COLLATE "C" NOT NULL,
    state      text   COLLATE "C" NOT NULL CHECK (state IN ('copying', 'frozen', 'gone', 'arriving')),
    server     text   COLLATE "C" NOT NULL,  -- where to; of one that arrives, where from
    move       text   COLLATE "C" NOT NULL,
    mover      text   COLLATE "C" NOT NULL DEFAULT '',
    started_at bigint NOT NULL,
    position   text   NOT NULL DEFAULT '',   -- how far it has been copied
    PRIMARY KEY (tenant)
);

-- What was changed while a tenant was copied: keys only. What one transaction changed is seen together.
CREATE TABLE {schema}.changes (
    tenant      text   COLLATE "C" NOT NULL,
    transaction bigint NOT NULL DEFAULT (pg_current_xact_id()::text::bigint),
    workspace   text   COLLATE "C" NOT NULL,
    what        text   COLLATE "C" NOT NULL,
    key         text   COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, transaction, workspace, what, key)
);

CREATE TABLE memories (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    tier           TEXT    NOT NULL,
    account        TEXT,
    channel        TEXT,
    conversation   TEXT,
    agent          TEXT,
    kind           TEXT    NOT NULL,
    role           TEXT,
    source         TEXT,
    lifetime       TEXT    NOT NULL,
    importance     REAL    NOT NULL,
    created_at     INTEGER NOT NULL,
    accessed_at    INTEGER NOT NULL,
    access_count   INTEGER NOT NULL,
    expires_at     INTEGER,
    archived_at    INTEGER,
    superseded_by  TEXT,
    tags           TEXT,
    refs           TEXT,
    metadata       TEXT,
    checksum       TEXT    NOT NULL,
    schema_version INTEGER NOT NULL,
    text           TEXT    NOT NULL,
    data           TEXT,
    -- What the text index was given, if not the text itself. To take words out of the index, the same must be given
    -- again, and another version of recollect or of Unicode might segment the text differently.
    segmented      TEXT
);

CREATE INDEX memories_by_time ON memories (created_at, seq);
CREATE INDEX memories_by_conversation ON memories (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX memories_by_successor ON memories (superseded_by) WHERE superseded_by IS NOT NULL;

-- Little-endian float32, in a table of its own: counting a retrieval then never rewrites a vector.
CREATE TABLE embeddings (
    seq    INTEGER PRIMARY KEY REFERENCES memories (seq),
    model  TEXT,
    vector BLOB NOT NULL
);

-- Contentless: the words are here, the text is in memories. Marks (M*) are letters' parts in Thai and its neighbours.
CREATE VIRTUAL TABLE memories_text USING fts5 (
    text,
    content = '',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
INSERT INTO memories_text (memories_text, rank) VALUES ('secure-delete', 1);

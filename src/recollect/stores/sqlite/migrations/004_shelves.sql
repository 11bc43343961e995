-- What is addressed rather than recalled. The number tells the order in which things were first kept.
CREATE TABLE things (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    shelf      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    parent     TEXT,
    account    TEXT,
    agent      TEXT,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    UNIQUE (shelf, key)
);

CREATE INDEX things_by_parent ON things (shelf, parent, seq);

-- Things as they were before an entry, beside the records.
ALTER TABLE undo ADD COLUMN things BLOB;

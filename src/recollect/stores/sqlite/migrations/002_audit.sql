-- AUTOINCREMENT remembers how many entries there ever were, so a removed last entry is missed too.
CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    id      TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    action  TEXT    NOT NULL,
    message TEXT    NOT NULL,
    actor   TEXT,
    meta    TEXT    NOT NULL,
    hash    TEXT    NOT NULL
);

CREATE TRIGGER audit_is_append_only_update BEFORE UPDATE ON audit
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER audit_is_append_only_delete BEFORE DELETE ON audit
BEGIN
    SELECT raise(ABORT, 'the audit log is append-only');
END;

-- Records as they were before an entry, one JSON array each, until compaction.
CREATE TABLE undo (
    seq    INTEGER PRIMARY KEY REFERENCES audit (seq),
    before BLOB NOT NULL
);

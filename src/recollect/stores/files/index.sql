-- How far each file of the log was taken in: the file as it was then, the CRC-32 of what was read, and whether a last
-- line without its end was taken in besides.
CREATE TABLE log_files (
    name    TEXT PRIMARY KEY,
    inode   INTEGER NOT NULL,
    size    INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    read_to INTEGER NOT NULL,
    crc     INTEGER NOT NULL,
    torn    INTEGER NOT NULL
);

-- What is known of the lines of each memory, beyond what the memory is.
CREATE TABLE log_lines (
    id             TEXT    PRIMARY KEY,
    version        INTEGER NOT NULL,
    vector_version INTEGER NOT NULL,
    number         INTEGER NOT NULL,
    size           INTEGER NOT NULL,
    foreign_fields TEXT
) WITHOUT ROWID;

-- Memories that were deleted, and the versions up to which they were.
CREATE TABLE tombs (
    id      TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;

-- Those of them whose tombstones were lost: only the audit log says that they were deleted.
CREATE TABLE unburied (
    id      TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE damage (
    name    TEXT    NOT NULL,
    byte    INTEGER NOT NULL,
    at      TEXT    NOT NULL,
    problem TEXT    NOT NULL,
    PRIMARY KEY (name, byte)
) WITHOUT ROWID;

CREATE TABLE facts (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- What it takes to undo an audit entry, a row for each memory or document. The content of a memory is here only once it
-- was deleted: a memory that was changed has the old values of its fields here.
CREATE TABLE undo_items (
    entry INTEGER NOT NULL,
    item  INTEGER NOT NULL,
    what  TEXT    NOT NULL,  -- deleted, changed or thing
    name  TEXT    NOT NULL,  -- the id of the memory, or shelf/key
    body  BLOB    NOT NULL,
    PRIMARY KEY (entry, item)
);

CREATE INDEX undo_items_by_memory ON undo_items (name) WHERE what <> 'thing';

INSERT INTO undo_items
SELECT u.seq, r.key, CASE WHEN m.id IS NULL THEN 'deleted' ELSE 'changed' END, r.value ->> 'id',
    CAST(CASE WHEN m.id IS NULL THEN r.value ELSE old_values(r.value) END AS BLOB)
FROM (SELECT seq, CAST(before AS TEXT) AS records FROM undo) u,
    json_each(CASE WHEN json_valid(u.records) THEN u.records ELSE '[]' END) r
LEFT JOIN memories m ON m.id = r.value ->> 'id';

INSERT INTO undo_items
SELECT u.seq, 1000000 + t.key, 'thing', (t.value ->> 'shelf') || '/' || (t.value ->> 'key'), CAST(t.value AS BLOB)
FROM (SELECT seq, CAST(things AS TEXT) AS things FROM undo) u,
    json_each(CASE WHEN json_valid(u.things) THEN u.things ELSE '[]' END) t;

DROP TABLE undo;

-- The highest number that a deleted memory had. No number is given twice: a copy in memory that knows the memories up to
-- one looks for new ones behind it only.
CREATE TABLE numbers (last INTEGER NOT NULL);
INSERT INTO numbers SELECT coalesce(max(seq), 0) FROM changed;

DROP TRIGGER memories_deleted;
CREATE TRIGGER memories_deleted AFTER DELETE ON memories BEGIN
    INSERT INTO changed (seq) VALUES (old.seq);
    UPDATE numbers SET last = old.seq WHERE last < old.seq;
END;

-- Which memories changed, for whoever keeps a copy of them in memory. Counting a retrieval is no change.
CREATE TABLE changed (
    rev INTEGER PRIMARY KEY AUTOINCREMENT,
    seq INTEGER NOT NULL
);

CREATE TRIGGER memories_changed AFTER UPDATE OF importance, lifetime, expires_at, archived_at, superseded_by, tags
ON memories BEGIN
    INSERT INTO changed (seq) VALUES (new.seq);
END;

CREATE TRIGGER memories_deleted AFTER DELETE ON memories BEGIN
    INSERT INTO changed (seq) VALUES (old.seq);
END;

CREATE TRIGGER embeddings_added AFTER INSERT ON embeddings BEGIN
    INSERT INTO changed (seq) VALUES (new.seq);
END;

CREATE TRIGGER embeddings_deleted AFTER DELETE ON embeddings BEGIN
    INSERT INTO changed (seq) VALUES (old.seq);
END;

-- When what a memory says is so, as opposed to when it was stored. NULL is not known.
ALTER TABLE memories ADD COLUMN valid_from INTEGER;
ALTER TABLE memories ADD COLUMN valid_until INTEGER;

DROP TRIGGER memories_changed;
CREATE TRIGGER memories_changed
AFTER UPDATE OF importance, lifetime, expires_at, archived_at, valid_from, valid_until, superseded_by, tags, speaker
ON memories BEGIN
    INSERT INTO changed (seq) VALUES (new.seq);
END;

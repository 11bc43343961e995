-- What questions need of every memory, in columns: as PostgreSQL has them.
ALTER TABLE memories ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN speaker TEXT NOT NULL DEFAULT '';
ALTER TABLE memories ADD COLUMN named TEXT;     -- the name before a colon, which may be the speaker's
ALTER TABLE memories ADD COLUMN text_key INTEGER;   -- a hash of the text, of what is in no conversation
ALTER TABLE memories ADD COLUMN embedded TEXT;  -- model and dimensions of its vector

UPDATE memories SET length = letters(text), speaker = speaker_of(role, metadata),
    named = CASE WHEN conversation IS NOT NULL THEN name_in(text, metadata) END,
    text_key = CASE WHEN conversation IS NULL THEN text_key(text) END,
    embedded = (SELECT coalesce(e.model, '') || ':' || length(e.vector) / 4 FROM embeddings e WHERE e.seq = memories.seq);

CREATE INDEX memories_by_vector ON memories (embedded, seq);
CREATE INDEX memories_by_text ON memories (text_key) WHERE text_key IS NOT NULL;
-- Turns whose name nothing proves so far.
CREATE INDEX memories_by_name ON memories (conversation, named) WHERE named IS NOT NULL AND speaker <> named;

UPDATE memories AS m SET speaker = named WHERE named IS NOT NULL AND EXISTS (SELECT 1 FROM memories o
    WHERE o.conversation = m.conversation AND o.named = m.named AND o.seq <> m.seq AND o.tier = m.tier
    AND o.account IS m.account AND o.channel IS m.channel AND o.agent IS m.agent);

DROP TABLE texts;
DROP TRIGGER memories_changed;
CREATE TRIGGER memories_changed
AFTER UPDATE OF importance, lifetime, expires_at, archived_at, superseded_by, tags, speaker ON memories BEGIN
    INSERT INTO changed (seq) VALUES (new.seq);
END;

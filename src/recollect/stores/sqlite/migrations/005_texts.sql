-- To find a memory by its whole text: what is in no conversation, by a hash of it.
CREATE TABLE texts (
    key INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (key, seq)
) WITHOUT ROWID;

INSERT INTO texts (key, seq) SELECT text_key(text), seq FROM memories WHERE conversation IS NULL;

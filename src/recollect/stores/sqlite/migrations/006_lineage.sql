-- Which memories a memory was made of, as a JSON list of ids.
ALTER TABLE memories ADD COLUMN derived_from TEXT;

-- Which memories a memory was made of, as a JSON list of ids.
ALTER TABLE {schema}.contents ADD COLUMN derived_from text;

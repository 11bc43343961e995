-- When what a memory says is so, as opposed to when it was stored. NULL is not known.
ALTER TABLE {schema}.memories ADD COLUMN valid_from bigint;
ALTER TABLE {schema}.memories ADD COLUMN valid_until bigint;

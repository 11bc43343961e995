"""The port in SQL, once for every store of tables."""

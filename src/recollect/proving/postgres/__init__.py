"""Attacks on tenants of a PostgreSQL server."""

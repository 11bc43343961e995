"""Tenants on several servers."""

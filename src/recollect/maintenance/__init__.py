"""Maintenance jobs: archive, merge, supersede, expire, and what else is due as time goes by."""

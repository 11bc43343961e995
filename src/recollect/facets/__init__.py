"""The facets: `memory.x` is in `x.py`."""

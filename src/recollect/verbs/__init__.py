"""The verbs: `memory.x()` is in `x.py`."""

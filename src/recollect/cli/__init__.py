"""The command line: `recollect`, or `python -m recollect`."""

from recollect.cli.app import main

__all__ = ["main"]

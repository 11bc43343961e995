"""Modules that are imported when a test first uses them.

Every worker collects all tests, but few run those of Anthropic's and OpenAI's clients. Importing these takes a third of
the time of a collection.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Lazily:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)

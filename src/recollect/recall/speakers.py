"""The speakers of the last answer to a question of the same filter."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from msgspec.structs import astuple, replace

from recollect.values.filters import Filter
from recollect.view import View

_FILTERS = 64
"""How many filters have their speakers cached."""


class Speakers:
    """A cache for one query. It may be out of date, so its user compares it with the store's answer."""

    def __init__(self, view: View, wheres: Sequence[Filter]) -> None:
        self._cache: dict[Any, Set[str]] = view.cache("speakers")
        # A filter differs from the one before in the time at least.
        self._key = tuple(astuple(replace(where, now=_NEVER)) for where in wheres)

    def last(self) -> Set[str]:
        return self._cache.get(self._key, frozenset())

    def keep(self, speakers: Set[str]) -> Set[str]:
        self._cache.pop(self._key, None)
        self._cache[self._key] = speakers
        while len(self._cache) > _FILTERS:
            self._cache.pop(next(iter(self._cache), None), None)
        return speakers


_NEVER: Any = None

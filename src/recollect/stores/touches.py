"""Retrievals that are counted, but not written yet: a recall must not cost a disk flush, nor wait for a writer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from recollect.values.record import Record

LIMIT, SECONDS = 256, 5.0


class Touched(NamedTuple):
    times: int
    at: datetime
    """The last time."""


class Touches:
    """Those of one place, for any number of threads."""

    def __init__(self, limit: int = LIMIT, seconds: float = SECONDS) -> None:
        self._limit, self._seconds = limit, seconds
        self._lock = threading.Lock()
        self._touched: dict[str, Touched] = {}
        self._since = 0.0

    def __bool__(self) -> bool:
        return bool(self._touched)

    def add(self, ids: Sequence[str], at: datetime) -> bool:
        """Count one retrieval each. True when it is time to write them."""
        with self._lock:
            if not self._touched:
                self._since = time.monotonic()
            for ident in ids:
                self._count(ident, 1, at)
            return len(self._touched) >= self._limit or time.monotonic() - self._since > self._seconds

    def _count(self, ident: str, count: int, at: datetime) -> None:
        before = self._touched.get(ident)
        self._touched[ident] = (
            Touched(count, at) if before is None else Touched(before.times + count, max(before.at, at))
        )

    def onto(self, record: Record) -> Record:
        """The record with what is not written of it yet."""
        touched = self._touched.get(record.id)
        if touched is None:
            return record
        return replace(
            record, access_count=record.access_count + touched.times, accessed_at=max(record.accessed_at, touched.at)
        )

    def take(self) -> Mapping[str, Touched]:
        """All of them, to be written; `put_back` those that could not be."""
        with self._lock:
            taken, self._touched = self._touched, {}
            return taken

    def put_back(self, taken: Mapping[str, Touched]) -> None:
        """It is tried again after a while."""
        with self._lock:
            self._since = time.monotonic()
            for ident, (count, at) in taken.items():
                self._count(ident, count, at)

    def drop(self, ids: Iterable[str]) -> None:
        """Of memories that are gone."""
        with self._lock:
            for ident in ids:
                self._touched.pop(ident, None)

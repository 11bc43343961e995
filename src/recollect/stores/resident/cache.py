"""Resident copies of places. Those not asked for longest go when all together take too much memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

MOST_BYTES = 1 << 30


class Copy(Protocol):
    @property
    def bytes(self) -> int: ...

    def finish(self) -> None:
        """Do what was put off, before the process ends."""
        ...

    def close(self) -> None:
        """Let go of whatever it holds. Whoever still has it reads it anew."""
        ...


K = TypeVar("K")
C = TypeVar("C", bound=Copy)


class ResidentCache(Generic[K, C]):
    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._copies: dict[K, C] = {}
        """The one that was asked for last comes last."""

    def __len__(self) -> int:
        return len(self._copies)

    def __contains__(self, key: K) -> bool:
        return key in self._copies

    def get(self, key: K, make: Callable[[], C]) -> C:
        with self._lock:
            copy = self._copies.pop(key, None) or make()
            self._copies[key] = copy
            return copy

    def make_room(self) -> None:
        """The last one stays however large it is, or else each question would read it anew."""
        with self._lock:
            excess = sum(copy.bytes for copy in self._copies.values()) - self.most
            going: list[C] = []
            for key in list(self._copies)[:-1]:
                if excess <= 0:
                    break
                going.append(self._copies.pop(key))
                excess -= going[-1].bytes
        for copy in going:
            copy.close()

    def drop(self, key: K) -> None:
        with self._lock:
            copy = self._copies.pop(key, None)
        if copy is not None:
            copy.close()

    def finish(self) -> None:
        with self._lock:
            copies = list(self._copies.values())
        for copy in copies:
            copy.finish()

    def clear(self) -> None:
        with self._lock:
            going, self._copies = list(self._copies.values()), {}
        for copy in going:
            copy.close()

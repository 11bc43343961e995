"""Resident copies of places. Those not asked for longest go when all together take too much memory."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

MOST_BYTES = 1 << 30


class Copy(Protocol):
    @property
    def bytes(self) -> int: ...


K = TypeVar("K")
C = TypeVar("C", bound=Copy)


class Copies(Generic[K, C]):
    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._copies: dict[K, C] = {}
        """The one that was asked for last comes last."""
        self._users: Counter[K] = Counter()

    def __len__(self) -> int:
        return len(self._copies)

    def __contains__(self, key: K) -> bool:
        return key in self._copies

    @contextmanager
    def lent(self, key: K, make: Callable[[K], C]) -> Generator[C]:
        """The copy of something. It stays while anybody has it."""
        with self._lock:
            copy = self._copies.pop(key, None) or make(key)
            self._copies[key] = copy
            self._users[key] += 1
        try:
            yield copy
        finally:
            with self._lock:
                self._users[key] -= 1
                if not self._users[key]:
                    del self._users[key]
                self._make_room()

    def _make_room(self) -> None:
        """The last one stays however large it is, or else each question would read it anew."""
        excess = sum(copy.bytes for copy in self._copies.values()) - self.most
        for key in list(self._copies)[:-1]:
            if excess <= 0:
                return
            if key not in self._users:
                excess -= self._copies.pop(key).bytes

    def drop(self, key: K) -> None:
        with self._lock:
            self._copies.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._copies.clear()

"""How much one caller may ask for, and how long one may wait to be asked again."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from recollect.server.access.caller import BusyError
from recollect.server.problems import TooManyError


class Limits(NamedTuple):
    per_second: float = 100.0
    """Requests of one key, over time."""
    burst: int = 200
    """Requests of one key at once."""
    body: int = 8 * 1024 * 1024
    """Bytes of a request. One memory may have 1 MiB, which escapes make longer."""
    upload: int = 1024 * 1024 * 1024
    """Bytes of an import."""
    seconds: float = 30.0
    """For a client to send its request."""


class Buckets:
    """A bucket of requests for each caller, which fills by itself."""

    _MOST = 10_000

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """TooManyError where it is empty."""
        limits, now = self._limits, time.monotonic()
        with self._lock:
            left, then = self._left.pop(caller, (float(limits.burst), now))
            left = min(float(limits.burst), left + (now - then) * limits.per_second)
            self._left[caller] = (left - 1.0 if left >= 1.0 else left), now
            while len(self._left) > self._MOST:
                self._left.popitem(last=False)
        if left < 1.0:
            raise TooManyError((1.0 - left) / limits.per_second)


class ConcurrencyLimit:
    """How many may be at something at once, in all and from one address. Who is too many is refused at once."""

    def __init__(self, most: int, of_one: int) -> None:
        self._most, self._of_one = most, of_one
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    @contextmanager
    def taken(self, address: str) -> Generator[None]:
        with self._lock:
            if self._taken.total() >= self._most or self._taken[address] >= self._of_one:
                raise BusyError("too many are logging in at once; try again in a moment")
            self._taken[address] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[address] -= 1
                if not self._taken[address]:
                    del self._taken[address]

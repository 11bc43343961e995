"""Numbers that a store measures about itself, as values: nothing of what is stored, and nobody's name."""

from __future__ import annotations

import threading
from bisect import bisect_left
from typing import NamedTuple

from recollect.runtime import forking

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of a histogram's buckets, in seconds."""
Labels = tuple[tuple[str, str], ...]


class Histogram(NamedTuple):
    counts: tuple[float, ...]
    """How many were in each bucket of BOUNDS, and last those above all of them."""
    sum: float


class Metric(NamedTuple):
    """One number, by the name that Prometheus knows it by."""

    name: str
    help: str
    value: float | Histogram
    labels: Labels = ()


class Durations:
    """Counts durations into a histogram. Several threads may add at once; a forked process begins at zero."""

    def __init__(self) -> None:
        self.after_fork()
        forking.watch(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0.0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        bucket = bisect_left(BOUNDS, seconds)
        with self._lock:
            self._counts[bucket] += 1
            self._sum += seconds

    def histogram(self) -> Histogram:
        with self._lock:
            return Histogram(tuple(self._counts), self._sum)

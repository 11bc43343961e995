"""What a store of plain files counts while it works, under the ledger document's names."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Generator
from contextlib import contextmanager

CONTENTION = "memory.locks.contention.count"
COMPACTION = "memory.compaction.count"
CORRUPTION = "memory.errors.corruption.count"
WRITE, QUERY = "memory.operations.write.duration_ms", "memory.operations.query.duration_ms"
_KEPT = 1000


class Meter:
    """Counts since the store was opened, and the last thousand durations of each kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter({CONTENTION: 0, COMPACTION: 0, CORRUPTION: 0})
        self._durations: dict[str, deque[float]] = {WRITE: deque(maxlen=_KEPT), QUERY: deque(maxlen=_KEPT)}

    def took(self, name: str, started: float) -> None:
        """Note how long it is since `started`, a time of `time.perf_counter`."""
        self._durations[name].append(1000 * (time.perf_counter() - started))

    @contextmanager
    def timed(self, name: str) -> Generator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.took(name, started)

    def read(self) -> dict[str, float]:
        """Durations as their median, and under `.p95` the value that one in twenty passes."""
        values: dict[str, float] = dict(self.counts)
        for name, durations in self._durations.items():
            ordered = sorted(durations)
            values[name] = ordered[len(ordered) // 2] if ordered else 0.0
            values[f"{name}.p95"] = ordered[len(ordered) * 95 // 100] if ordered else 0.0
        return values
